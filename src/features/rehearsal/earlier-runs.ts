import { callOf, isAlready } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import type { EarlierRuns } from "./tell-rehearsal.ts";

/** How many requests are read for earlier runs, the newest first. */
export const mostRead = 500;

/**
 * How long earlier runs of a command took, from send to end: those of the targets, or where they had
 * none, those in the targets' projects. Only runs that changed something count.
 */
export function earlierRuns(
  requests: readonly StoredRequest[],
  { name: command }: Pick<ChangeCommand, "name">,
  targets: readonly Pick<Target, "id" | "projectId">[],
): EarlierRuns {
  const ids = new Set(targets.map(({ id }) => id));
  const projects = new Set(targets.map(({ projectId }) => projectId));
  const runs = requests.flatMap(({ record, state, stage, changedAt }) => {
    const call = callOf(stage);
    const isRun = record.command === command && state === "done" && !isAlready(stage);
    // A person who records an outcome later says nothing about how long it took.
    const wasSeen = stage.state === "done" && stage.decidedBy === undefined;
    if (!isRun || !wasSeen || !call) return [];
    return [{ target: record.target, tookMs: changedAt - call.sentAt }];
  });
  const own = runs.filter(({ target }) => ids.has(target.id));
  const others = runs.filter(({ target }) => projects.has(target.projectId));
  const [on, of] = own.length > 0 ? (["targets", own] as const) : (["projects", others] as const);
  return { on, tookMs: of.map(({ tookMs }) => tookMs) };
}
