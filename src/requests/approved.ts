import { type Approvable, digestOf } from "../approvals/digest.ts";
import { countApprovals } from "../approvals/votes.ts";
import type { Vm } from "../compute/compute.ts";
import { approvalRule } from "../policy/approval-rule.ts";
import { voteRefusal } from "../policy/vote.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { GateVerdict } from "./gate.ts";
import type { Performing } from "./performing.ts";
import type { RequestRecord, StoredRequest } from "./record.ts";

/** What an approval of this request covers: everything in it but its own digest. */
export function approvableOf(
  record: RequestRecord,
  approval: { required: number; expiresAt: number; evidence: unknown },
): Approvable {
  return {
    id: record.id,
    command: record.command,
    input: record.input,
    target: record.target,
    ...(record.children ? { children: record.children } : {}),
    requesterId: record.requester.id,
    teamId: record.requester.teamId,
    channelId: record.channelId,
    ...(record.reason === undefined ? {} : { reason: record.reason }),
    policyVersion: record.policyVersion,
    required: approval.required,
    expiresAt: approval.expiresAt,
    evidence: approval.evidence,
  };
}

/**
 * Whether what others agreed to is what would run now: the digest is made again from what stands in the journal, votes
 * are counted again with today's groups, and the VMs of a project must be those that were shown.
 */
export async function approvalProblem(
  request: StoredRequest,
  command: ChangeCommand,
  vms: readonly Vm[],
  by: Performing,
): Promise<GateVerdict | undefined> {
  const { record, votes } = request;
  const needed = approvalRule(by.policy, command, [record.target]);
  if (needed.required === 0 && !record.approval) return undefined;
  // What was asked for with approvals never turns into an emergency afterwards
  if (record.breakGlass && !record.approval) return undefined;
  // Asked for by Gatehouse itself, on behalf of a request that has its approvals: a copy harms nobody
  if (record.via === "safety" && record.command === "vm snapshot") return undefined;
  const { approval } = record;
  if (!approval || approval.required < needed.required) {
    await alarm(record.id, "authorized without the approvals it needs", by);
    return { is: "closed", why: "it lacks the approvals that policy asks for" };
  }
  const digest = digestOf(approvableOf(record, approval));
  if (digest !== approval.digest) {
    await alarm(record.id, "differs from what was approved", by);
    return { is: "closed", why: "it is not what was approved any more" };
  }
  // The ballot authorizes in the same step as the last vote it needs: fewer, or unrecorded ones, were put there by hand
  const everybody = new Set(votes.map(({ voterId }) => voterId));
  const invented = await by.store.votesNotInTrail(request);
  if (countApprovals(votes, digest, everybody) < approval.required || invented.length > 0) {
    await alarm(record.id, "authorized without votes that the audit trail knows of", by);
    return { is: "closed", why: "nobody's approval of it is on record" };
  }
  const changed = childrenChanged(record, vms);
  if (changed)
    return {
      is: "closed",
      why: changed,
      hint: "Ask again: what is approved must be what is there.",
    };
  const mayApprove = new Set<string>();
  for (const { voterId, vote } of votes) {
    if (vote !== "approve") continue;
    try {
      const voter = await by.person(voterId, record.requester.teamId);
      const { policy, ourTeamId } = by;
      if (!voteRefusal({ policy, voter, ourTeamId, requesterId: record.requester.id }))
        mayApprove.add(voterId);
    } catch {
      return { is: "later", why: "Slack can't be asked whether the approvers still may approve" };
    }
  }
  const counted = countApprovals(votes, digest, mayApprove);
  if (counted >= approval.required) return undefined;
  return {
    is: "closed",
    why: `${counted} of ${approval.required} approvals count today`,
    hint: "Somebody who approved may not any more. Ask again.",
  };
}

/** Somebody changed the journal by hand: told where it can't be taken back, and where it is watched. */
async function alarm(request: string, why: string, by: Performing): Promise<void> {
  await by.store.note({ what: "alarm", request, why });
  by.log.error("approval.forged", { request, why });
}

/** How the VMs of a project differ from those that were shown when it was asked, in words. */
function childrenChanged(record: RequestRecord, vms: readonly Vm[]): string | undefined {
  if (!record.children) return undefined;
  const before = new Map(record.children.map((child) => [child.id, child]));
  const came = vms.filter(({ id }) => !before.has(id)).map(({ name }) => name);
  const now = new Set(vms.map(({ id }) => id));
  const went = record.children.filter(({ id }) => !now.has(id)).map(({ name }) => name);
  if (came.length === 0 && went.length === 0) return undefined;
  const parts = [
    came.length > 0 ? `${came.join(", ")} came` : "",
    went.length > 0 ? `${went.join(", ")} went` : "",
  ].filter(Boolean);
  return `${record.target.name} changed since it was asked: ${parts.join("; ")}`;
}
