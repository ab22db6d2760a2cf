import type { ChangeCommand } from "../registry/define.ts";
import type { Performing } from "./performing.ts";
import type { Progress, StoredRequest } from "./record.ts";
import { submit } from "./submit.ts";

/** Whether the way back is there: go on, wait for it, or don't go at all. */
export type WayBack =
  | { is: "ready"; safety?: NonNullable<Progress["safety"]> }
  | { is: "wait"; why: string; safety: NonNullable<Progress["safety"]> }
  | { is: "no"; why: string; hint: string };

const without = "Ask again, and tick “Don't take a safety snapshot first” if it must go without.";

/**
 * Takes a snapshot before what replaces data, unless it was refused in the dialog. The snapshot is a request of its own
 * under the same promise, asked for once however often this runs.
 */
export async function wayBack(
  request: StoredRequest,
  command: ChangeCommand,
  args: unknown,
  by: Performing,
): Promise<WayBack> {
  const wants = command.safetyFirst as ((args: unknown) => boolean) | undefined;
  if (wants?.(args) !== true) return { is: "ready" };
  const id = request.progress.safety?.request ?? (await ask(request, by));
  if (id === undefined)
    return { is: "no", why: "this version can't take a safety snapshot", hint: without };
  const safety = { request: id };
  const taken = await by.store.get(id);
  if (!taken) return { is: "no", why: "its safety snapshot is lost", hint: without };
  if (taken.state === "unknown") {
    return { is: "no", why: "nobody knows whether the safety snapshot was taken", hint: without };
  }
  if (!taken.final) return { is: "wait", why: "a safety snapshot is taken first", safety };
  if (taken.state !== "done") {
    const why = taken.progress.why ? `: ${taken.progress.why}` : "";
    return { is: "no", why: `the safety snapshot was not taken${why}`, hint: without };
  }
  const { snapshotId } = taken.progress.answer ?? {};
  if (snapshotId === undefined) {
    return {
      is: "no",
      why: "the service gave the safety snapshot no id, so it is no way back",
      hint: without,
    };
  }
  return { is: "ready", safety: { ...safety, snapshotId } };
}

async function ask(request: StoredRequest, by: Performing): Promise<string | undefined> {
  const { record } = request;
  const snapshot = by.commands.find(({ name }) => name === "vm snapshot");
  if (!snapshot) return undefined;
  const { id, teamId, name } = record.requester;
  const submitted = await submit(
    {
      command: snapshot,
      input: { vm: record.target.id, name: `before-${record.id}` },
      target: record.target,
      person: { id, teamId, name, kind: "member", groups: [] },
      channelId: record.channelId,
      via: "safety",
      askId: `safety-${record.id}`,
    },
    { ...by, staleAfterMs: by.policy.timing.staleAfterMs },
  );
  return submitted.id;
}
