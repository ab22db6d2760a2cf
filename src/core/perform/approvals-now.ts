import { fingerprintOf } from "../permit/fingerprint.ts";
import { countApprovals } from "../permit/votes.ts";
import type { Vm } from "../../fleet/compute/compute.ts";
import { askerOf } from "../request/origin.ts";
import { covers, needsOf, voteRefusal } from "../permit/approval-rule.ts";
import { type Permit, approvalsFor } from "../permit/permit.ts";
import type { Person } from "../../registry/invocation.ts";
import { type RequestRecord, approvableOf } from "../request/record.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import type { ClosedOrLater } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

/**
 * Checks whether exactly the approved request would run now. The fingerprint is made again, votes
 * are counted again with today's groups, and the VMs of a project must be those that approvers were
 * shown.
 */
export async function approvalProblem(
  request: StoredRequest,
  /** The permit that policy gives now, for the target as it was read now. */
  permit: Permit,
  vms: readonly Vm[],
  worker: Pick<WorkerContext, "policy" | "store" | "person" | "ourTeamId" | "log">,
): Promise<ClosedOrLater | undefined> {
  const { record, votes } = request;
  const { input, target, approval } = record;
  const { approvals: needed, command } = permit;
  if (needed.required === 0 && !approval) return undefined;
  const given = approval?.required ?? 0;
  if (needed.required > given) {
    // Approvals are judged by the name that the target had. If that name needed no more of them,
    // the target was renamed since, or has other VMs.
    const before = approvalsFor({ command, targets: [target], input }, worker);
    if (before.required <= given) {
      const why = `${target.name} now needs more approvals: ${needed.raised ?? needed.why}`;
      return { kind: "closed", why, hint: "Request again." };
    }
  }
  const asksForOthers = approval && !covers(needsOf(worker.policy, approval), needed.votes);
  if (!approval || approval.required < needed.required || asksForOthers) {
    await alarm(record.id, "authorized without the approvals it needs", worker);
    return { kind: "closed", why: "it lacks the approvals that policy requires" };
  }
  const digest = fingerprintOf(approvableOf(record, approval));
  if (digest !== approval.digest) {
    await alarm(record.id, "differs from what was approved", worker);
    return { kind: "closed", why: "it is no longer what was approved" };
  }
  // The last vote and the authorization are one step: fewer or unrecorded votes are forged
  const everyone = new Set(votes.map(({ voterId }) => voterId));
  const invented = await worker.store.votesNotInTrail(request);
  if (countApprovals(votes, digest, everyone) < approval.required || invented.length > 0) {
    await alarm(record.id, "authorized without votes that the audit trail knows of", worker);
    return { kind: "closed", why: "its approvals are not on record" };
  }
  const changed = childrenChanged(record, vms);
  const exactly = "Request again: approvals cover exactly what was shown.";
  if (changed) return { kind: "closed", why: changed, hint: exactly };
  const needs = needsOf(worker.policy, approval);
  const countNow = async (how?: { fresh: boolean }): Promise<number> => {
    const { id, teamId } = record.requester;
    const { ourTeamId } = worker;
    const requester = await worker.person(id, teamId, how);
    const askerId = askerOf(record);
    const asker = askerId === undefined ? undefined : await worker.person(askerId, teamId, how);
    const approvers: Person[] = [];
    for (const { voterId, vote } of votes) {
      if (vote !== "approve") continue;
      const voter = await worker.person(voterId, teamId, how);
      if (!voteRefusal({ votes: needs, voter, ourTeamId, requester, asker, approvers }))
        approvers.push(voter);
    }
    return countApprovals(votes, digest, new Set(approvers.map((approver) => approver.id)));
  };
  let counted: number;
  try {
    counted = await countNow();
    // The gateway that counted a vote may know of a group's new member before this worker does
    if (counted < approval.required) counted = await countNow({ fresh: true });
  } catch {
    return { kind: "later", why: "Slack can't confirm that the approvers may still approve" };
  }
  if (counted >= approval.required) return undefined;
  const why = `${counted} of ${approval.required} approvals are still valid`;
  const lost = "An approver lost the right to approve, or approved with two accounts.";
  return { kind: "closed", why, hint: `${lost} Request again.` };
}

/** Reports to the audit trail and the log that the journal was changed by hand. */
async function alarm(
  request: string,
  why: string,
  worker: Pick<WorkerContext, "store" | "log">,
): Promise<void> {
  await worker.store.note({ what: "alarm", request, why });
  worker.log.error("approval.forged", { request, why });
}

/** How the VMs of a project differ from those shown to approvers, in words. */
function childrenChanged(record: RequestRecord, vms: readonly Vm[]): string | undefined {
  if (!record.children) return undefined;
  const before = new Map(record.children.map((child) => [child.id, child]));
  const came = vms.filter(({ id }) => !before.has(id)).map(({ name }) => name);
  const now = new Set(vms.map(({ id }) => id));
  const went = record.children.filter(({ id }) => !now.has(id)).map(({ name }) => name);
  if (came.length === 0 && went.length === 0) return undefined;
  const added = came.length > 0 && `${came.join(", ")} added`;
  const removed = went.length > 0 && `${went.join(", ")} removed`;
  return `${record.target.name} changed since the request: ${[added, removed].filter(Boolean).join("; ")}`;
}
