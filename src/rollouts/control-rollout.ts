import { UserError } from "../errors.ts";
import type { RolloutProgress, RolloutState, StoredRollout } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";

export type RolloutControl = "pause" | "resume" | "stop";

/** The worker writes too, so a move may need several tries. */
const maxTries = 20;

/**
 * Pauses, resumes, or stops a rollout; VMs in progress finish. `policyVersion` is the one that allows the person to do
 * this. Throws UserError.
 */
export async function controlRollout(
  id: string,
  steering: RolloutControl,
  person: { id: string; name: string },
  policyVersion: string,
  rollouts: Rollouts,
): Promise<StoredRollout> {
  for (let tries = 0; tries < maxTries; tries++) {
    const rollout = await rollouts.get(id);
    if (!rollout || rollout.state === "planned")
      throw new UserError("This rollout no longer exists.");
    const to = steered(rollout, steering, { id: person.id, name: person.name });
    if (to === undefined) throw new UserError(tooLate(rollout));
    const renewed = steering === "resume" && rollout.record.policyVersion !== policyVersion;
    const moved = await rollouts.move(rollout, {
      ...to,
      why: to.progress.why ?? "resumed",
      actor: person.id,
      ...(renewed ? { record: { ...rollout.record, policyVersion } } : {}),
    });
    if (moved) return moved;
  }
  throw new UserError("Its state just changed.", "Press the button again.");
}

/** The state after the control, or undefined where it does not apply. */
export function steered(
  { state, progress }: Pick<StoredRollout, "state" | "progress">,
  steering: RolloutControl,
  by: { id: string; name: string },
): { state: RolloutState; progress: RolloutProgress } | undefined {
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

function tooLate({ state }: StoredRollout): string {
  if (state === "ending") return "It is already stopping: VMs in progress will finish.";
  return `It is already ${state === "paused" || state === "running" ? state : "finished"}.`;
}
