import { UserError } from "../errors.ts";
import type { RollProgress, RollState, StoredRoll } from "./roll.ts";
import type { RollStore } from "./store.ts";

export type Steering = "pause" | "resume" | "stop";

/** The worker writes to a roll too: a person's word is said again until it is heard. */
const mostTries = 20;

/**
 * Pauses, resumes or stops a roll. What is under way is not called back from the service, but from this moment nothing
 * further begins. `policyVersion` is the one under which the person may do this now. Throws UserError when it can't be done.
 */
export async function steerRoll(
  id: string,
  steering: Steering,
  person: { id: string; name: string },
  policyVersion: string,
  rolls: RollStore,
): Promise<StoredRoll> {
  for (let tries = 0; tries < mostTries; tries++) {
    const roll = await rolls.get(id);
    if (!roll || roll.state === "planned") throw new UserError("There is no such roll any more.");
    const to = steered(roll, steering, { id: person.id, name: person.name });
    if (to === undefined) throw new UserError(tooLate(roll));
    const renewed = steering === "resume" && roll.record.policyVersion !== policyVersion;
    const moved = await rolls.move(roll, {
      ...to,
      why: to.progress.why ?? "resumed",
      actor: person.id,
      tell: "now",
      ...(renewed ? { record: { ...roll.record, policyVersion } } : {}),
    });
    if (moved) return moved;
  }
  throw new UserError("It moved on just now.", "Please press again.");
}

/** The state after a person's word, or undefined where the word means nothing. */
export function steered(
  { state, progress }: Pick<StoredRoll, "state" | "progress">,
  steering: Steering,
  by: { id: string; name: string },
): { state: RollState; progress: RollProgress } | undefined {
  const { why: _was, ...kept } = progress;
  if (steering === "resume")
    return state === "paused" ? { state: "running", progress: kept } : undefined;
  if (steering === "pause") {
    if (state !== "running") return undefined;
    return { state: "paused", progress: { ...kept, why: `paused by ${by.name}`, by } };
  }
  if (state !== "running" && state !== "paused") return undefined;
  const ending = { ...kept, why: `stopped by ${by.name}`, by, endsAs: "stopped" as const };
  return { state: progress.open.length > 0 ? "ending" : "stopped", progress: ending };
}

function tooLate({ state }: StoredRoll): string {
  switch (state) {
    case "paused":
      return "It is paused already.";
    case "running":
      return "It is running already.";
    case "ending":
      return "It is being stopped already: those under way end first.";
    default:
      return "It has ended already.";
  }
}
