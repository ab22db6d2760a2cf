import { stateWords } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { vmOf } from "../../core/submit/resolve-targets.ts";
import { targetChange } from "../../core/perform/gate.ts";
import { isTransitional, statusFacts } from "../../fleet/compute/compute.ts";
import { md, name } from "../../messages/markdown.ts";
import {
  type ChangeCommand,
  type Command,
  type Effect,
  type Seen,
  type Target,
  nounOf,
  requestable,
  restoresSnapshot,
} from "../../registry/define.ts";
import type { Args } from "../../registry/invocation.ts";
import { checkInput } from "../../registry/parse.ts";
import type { Concern, Considered } from "../../talk/contributions.ts";
import { chosenSnapshot } from "../../talk/dialog-facts.ts";

/**
 * Says that a target's status doesn't allow the change or leaves nothing to do, or that it is in
 * ERROR. `isRefused`: the compute service refused the last such change because of that.
 */
export function concernOfStatus(
  { command, facts, input }: Considered,
  target: Target,
  { status, isRefused }: { status: string; isRefused: boolean },
): Concern | undefined {
  const seen = facts ? facts.seen : target.kind === "vm" ? vmOf(target) : undefined;
  if (facts && !seen && target.id !== "") return goneConcern(command, target);
  const changed = facts && seen && targetChange(target, seen);
  if (changed !== undefined) return { target, why: md`changed: ${changed}`, effect: "fails" };
  const effect: Effect<Seen, Args> = command.effect;
  const refused = seen && effect.notNow?.(seen);
  if (refused) {
    const why = refused.text.replace(`${target.name} `, "").replace(/\.$/, "");
    return { target, why: md`${why}`, effect: "fails" };
  }
  const read = checkInput(command, input);
  if (seen && "args" in read && effect.already?.(seen, read.args))
    return { target, why: md`is already as wanted: nothing would be sent`, effect: "note" };
  if (target.id !== "" && isTransitional(status))
    return {
      target,
      why: md`is ${status}, and it would wait until that has settled`,
      effect: "note",
    };
  if (!statusFacts(status).isAlarming) return undefined;
  const last = `the compute service refused the last ${nounOf(command)} because of that`;
  return isRefused
    ? { target, why: md`is in ${status}, and ${last}`, effect: "fails" }
    : { target, why: md`is in ${status}`, effect: "note" };
}

/** A project that is gone needs no deletion any more. */
function goneConcern(command: ChangeCommand, target: Target): Concern {
  const isDone = command.on === "project" && command.deletes === true;
  return isDone
    ? { target, why: md`is gone already: nothing would be sent`, effect: "note" }
    : { target, why: md`is gone`, effect: "fails" };
}

/** Says which open requests stand before a change of this target, the one that locks it first. */
export function concernOfLocks(
  target: Target,
  open: readonly StoredRequest[],
  commands: readonly Command[],
): Concern[] {
  const nouns = new Map<string, string>(
    requestable(commands).map((one) => [one.name, nounOf(one)]),
  );
  return open.flatMap(({ record, state, final }): Concern[] => {
    const { target: its, command, requester, id } = record;
    const excludes =
      its.id === target.id ||
      (its.kind === "project" && its.id === target.projectId) ||
      (target.kind === "project" && its.projectId === target.id);
    if (final || !excludes || its.id === "") return [];
    const deed = md`the ${nouns.get(command) ?? command} that ${requester.name} requested (${name(id)})`;
    if (state === "unknown")
      return [
        {
          target,
          why: md`is locked: the outcome of ${deed} is unknown until someone records it`,
          effect: "fails",
        },
      ];
    const why =
      state === "draft"
        ? md`has another request: ${deed} waits for approval`
        : md`is changing: ${deed} is ${stateWords(state)} and comes first`;
    return [{ target, why, effect: "note" }];
  });
}

/** Says that a pinned VM would fail attestation after the change. */
export function concernOfPins({ command, facts }: Considered, target: Target): Concern | undefined {
  if (command.on !== "vm") return undefined;
  const then = md`attestation fails until the pin is updated`;
  if (command.changesMeasurement)
    return {
      target,
      why: md`is pinned, and this can change its measurement: then ${then}`,
      effect: "halts",
    };
  const seen = facts?.seen;
  if (!restoresSnapshot(command) || !facts || !seen || !("projectId" in seen)) return undefined;
  const was = chosenSnapshot(facts)?.measurement;
  const is = seen.attestation?.measurement;
  if (was === undefined || is === undefined || was === is) return undefined;
  return {
    target,
    why: md`is pinned, and this snapshot was taken under another measurement: ${then}`,
    effect: "halts",
  };
}
