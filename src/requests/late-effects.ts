import { ComputeError } from "../compute/errors.ts";
import { message, type Message, readable, section } from "../messages/message.ts";
import { lines, md, name } from "../messages/text.ts";
import type { Seen } from "../registry/define.ts";
import { readTarget } from "./gate.ts";
import { isUnsettled, statusOf } from "./judge.ts";
import type { Performing } from "./performing.ts";
import type { StoredRequest } from "./record.ts";

/** For so many times of quiet after the second call has ended, the first one may still take effect. */
const quiets = 10;
const mostOthers = 20;

/**
 * One look at the targets of what was sent twice. Whatever the service does with the first call after the second can't be
 * prevented, but it isn't silent: a target that moves although nobody asked is told once and stands in the trail
 * (reliability.md, A7). What began and ended between two looks is not seen.
 */
export async function lookForLateEffects(
  by: Performing,
  tell: (request: StoredRequest, message: Message) => Promise<unknown>,
): Promise<void> {
  const { store, policy } = by;
  for (const id of await store.takeLates(policy.timing.stableGapMs)) {
    const request = await store.get(id);
    if (request && !request.final && request.state !== "unknown") continue;
    if (!request || !(await mayStillCome(request, by))) {
      await store.lateOver(id);
      continue;
    }
    const seen = await read(request, by);
    if (seen === undefined || !isUnsettled(seen)) continue;
    // Whoever asks at the same moment may be why it moves
    if (!(await mayStillCome(request, by))) continue;
    await tell(request, renderLateEffect(request, seen));
    await store.note({
      what: "late-effect",
      request: id,
      target: request.record.target,
      status: statusOf(seen),
    });
    await store.lateOver(id);
  }
}

/** Not for ever, and not once somebody else has changed the target: then nobody can tell whose effect it is. */
async function mayStillCome(request: StoredRequest, by: Performing): Promise<boolean> {
  const { record, changedAt } = request;
  const { store, policy } = by;
  if ((await store.now()) > changedAt + quiets * policy.timing.quiesceMs) return false;
  const { id, projectId } = record.target;
  const places = [...new Set([id, projectId])].map((targetId) =>
    store.recentIds({ targetId }, mostOthers),
  );
  const others = await store.getMany([...new Set((await Promise.all(places)).flat())]);
  return !others.some(
    (other) => other.record.id !== record.id && (other.progress.sentAt ?? 0) > changedAt,
  );
}

async function read({ record }: StoredRequest, by: Performing): Promise<Seen | undefined> {
  try {
    return (await readTarget(record.target, by)).seen;
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    return undefined;
  }
}

function renderLateEffect({ record, state }: StoredRequest, seen: Seen): Message {
  const said = md`🚨 *${record.target.name}* is ${statusOf(seen)}, and nobody asked for it.`;
  const second = state === "done" ? md`, after the second one was done` : md``;
  return message(
    readable(said),
    section(
      lines(
        said,
        md`The first call of ${name(record.id)} got no answer, so it was sent once more. It seems to take effect only now${second}: the same change, and one more interruption. Nothing has to be done but to know it.`,
      ),
    ),
  );
}
