import type { Vm } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { isTransitional } from "../compute/settle.ts";
import { breakGlassRefusal, refusal as policyRefusal } from "../policy/refusal.ts";
import { approvalProblem } from "./approved.ts";
import type { ChangeCommand, Seen } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import type { Performing } from "./performing.ts";
import type { StoredRequest } from "./record.ts";
import { statusOf } from "./judge.ts";

/**
 * The last look before the claim: may this still run, as it was asked for, against what stands now? Rights are those of
 * the requester (never the bot's), and the target is read again: the id is what counts.
 */
export type GateVerdict =
  | { is: "open"; before: Seen | undefined; vmIds: readonly string[] }
  /** The wanted state stands: nothing needs to be sent. */
  | { is: "already"; seen: Seen }
  | { is: "closed"; why: string; hint?: string }
  /** It can't be told now: nothing was sent, come back. */
  | { is: "later"; why: string; hint?: string };

export async function gate(
  request: StoredRequest,
  command: ChangeCommand,
  args: unknown,
  by: Performing,
): Promise<GateVerdict> {
  const { record } = request;
  if (record.policyVersion !== by.policyVersion) {
    return {
      is: "closed",
      why: "the policy changed since this was asked",
      hint: "Ask again: the new policy decides.",
    };
  }
  let person;
  try {
    person = await by.person(record.requester.id, record.requester.teamId);
  } catch {
    return { is: "later", why: "Slack can't be asked who you are right now" };
  }
  let read: Read;
  try {
    read = await readTarget(record.target, by);
  } catch (error) {
    const verdict = whenUnreadable(error);
    // The second time in a row: one failed handshake may be a hiccup, a wrong certificate stays
    if (verdict.why === untrusted && request.progress.why === untrusted) {
      const reason = "the service's certificate can't be trusted: somebody else may be answering";
      await by.store.freeze({ by: "Gatehouse", reason });
    }
    return verdict;
  }
  const { seen, vms } = read;
  const vmIds = vms.map(({ id }) => id);
  const asked = {
    policy: by.policy,
    person,
    ourTeamId: by.ourTeamId,
    command,
    targets: [record.target],
    channelId: record.channelId,
    vmNames: vms.map(({ name }) => name),
  };
  const refused =
    record.breakGlass && !record.approval ? breakGlassRefusal(asked) : policyRefusal(asked);
  if (refused) return { is: "closed", why: refused.text, hint: refused.hint };
  const unapproved = await approvalProblem(request, command, vms, by);
  if (unapproved) return unapproved;
  if (command.on === "new-project") return judgeNew(seen as readonly never[], command, args, vmIds);
  if (seen === undefined) {
    if (command.name === "project delete") return { is: "already", seen: [] };
    return {
      is: "closed",
      why: `${record.target.name} is gone`,
      hint: "Look it up again by its name.",
    };
  }
  const effect = command.effect as ChangeCommand["effect"] & {
    already?(now: Seen, args: unknown): boolean;
  };
  // Sent before, and reads said that nothing had happened: standing as wanted by now, it came late after all
  if (request.attempt > 0 && !isAnother(record.target, seen) && effect.already?.(seen, args))
    return { is: "already", seen };
  const changed = difference(record.target, seen);
  if (changed) return { is: "closed", why: changed, hint: "Look at it again and ask anew." };
  if (effect.already?.(seen, args)) return { is: "already", seen };
  const notNow = (
    effect.notNow as
      | ((now: Seen, args: unknown) => { text: string; hint?: string } | undefined)
      | undefined
  )?.(seen, args);
  if (notNow)
    return { is: "closed", why: notNow.text, ...(notNow.hint ? { hint: notNow.hint } : {}) };
  if (isTransitional(statusOf(seen))) {
    return {
      is: "later",
      why: `${record.target.name} is ${statusOf(seen)}: waiting until it has settled`,
    };
  }
  return { is: "open", before: seen, vmIds };
}

function judgeNew(
  named: readonly Seen[],
  command: ChangeCommand,
  args: unknown,
  vmIds: readonly string[],
): GateVerdict {
  const refuse = (
    command.effect.notNow as
      | ((now: Seen, args: unknown) => { text: string; hint?: string } | undefined)
      | undefined
  )?.(named as never, args);
  if (refuse)
    return { is: "closed", why: refuse.text, ...(refuse.hint ? { hint: refuse.hint } : {}) };
  return { is: "open", before: named as never, vmIds };
}

export interface Read {
  seen: Seen | undefined;
  /** The VMs of a project, when the target is one. */
  vms: readonly Vm[];
}

/** Reads the target. Undefined only when it is proven absent: a 404 counts while a read that must succeed does. */
export async function readTarget(
  target: Target,
  { compute }: Pick<Performing, "compute">,
): Promise<Read> {
  if (target.id === "") {
    const all = await compute.projects.listAll();
    return { seen: all.filter((project) => project.name === target.name), vms: [] };
  }
  try {
    if (target.kind === "vm") return { seen: await compute.vms.get(target.id), vms: [] };
    const project = await compute.projects.get(target.id);
    const vms = project.type === "TEE_VM" ? await compute.projects.vms(target.id) : [];
    return { seen: project, vms };
  } catch (error) {
    if (!(error instanceof ComputeError) || error.kind !== "not-found") throw error;
    // The control read: when the list answers and this one is missing from it, it is gone
    const all = await compute.projects.listAll();
    if (target.kind === "project" && all.some(({ id }) => id === target.id)) throw error;
    return { seen: undefined, vms: [] };
  }
}

const untrusted = "the service's certificate can't be trusted; nothing was sent";

function whenUnreadable(error: unknown): Extract<GateVerdict, { is: "closed" | "later" }> {
  if (!(error instanceof ComputeError)) throw error;
  if (error.reason === "tls") return { is: "later", why: untrusted };
  if (error.status === 401 || error.status === 403) {
    return {
      is: "closed",
      why: `the service refused our key (${error.status})`,
      hint: "Nothing was sent. Whoever runs Gatehouse must look at COMPUTE_API_KEY.",
    };
  }
  if (error.kind === "refused" || error.kind === "conflict") {
    return {
      is: "closed",
      why: `the service refused to show it${error.serviceMessage ? `: ${error.serviceMessage}` : ""}`,
    };
  }
  return { is: "later", why: "the service can't be reached right now; nothing was sent" };
}

/** Under this id there is something else by now. */
function isAnother(asked: Target, seen: Seen): boolean {
  if (!("createdAt" in seen)) return false;
  return (
    asked.createdAt !== undefined &&
    seen.createdAt !== undefined &&
    asked.createdAt !== seen.createdAt
  );
}

/** How what stands now differs from what was asked about, in words; undefined when it is the same thing. */
export function difference(asked: Target, seen: Seen): string | undefined {
  if (Array.isArray(seen)) return undefined;
  const now = seen as Exclude<Seen, readonly unknown[]>;
  if (now.name !== asked.name) return `${asked.name} is called ${now.name} now`;
  if (asked.createdAt && now.createdAt && asked.createdAt !== now.createdAt) {
    return `${asked.name} is not the one that was asked about: it was created at ${now.createdAt}`;
  }
  for (const spec of ["cpu", "memory", "disk"] as const) {
    const was = asked.specs?.[spec];
    const is = now.specs?.[spec];
    if (was !== undefined && is !== undefined && was !== is)
      return `${asked.name} changed meanwhile: ${spec} ${was} → ${is}`;
  }
  return undefined;
}
