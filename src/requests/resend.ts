import { advance } from "./perform.ts";
import type { Performing } from "./performing.ts";

/**
 * Sends once more what provably did not happen. Only the worker that sent may do so, after it saw its own call end:
 * a successor can't know whether the first call is still on its way (reliability.md, P13).
 */
export async function resendOwn(by: Performing): Promise<void> {
  // Others come while these are read
  const ids = [...by.mine];
  const requests = await by.store.getMany(ids);
  const present = new Set(requests.map(({ record }) => record.id));
  for (const id of ids) if (!present.has(id)) by.mine.delete(id);
  for (const request of requests) {
    const { id } = request.record;
    if (request.final || request.owner !== by.workerId) {
      by.mine.delete(id);
      continue;
    }
    if (request.state !== "not-applied") continue;
    // What was learned of the first call says nothing about the second
    const {
      reservedFor: _r,
      notSent,
      throttled,
      resent,
      before,
    } = { reservedFor: undefined, ...request.progress };
    const counts = {
      ...(notSent ? { notSent } : {}),
      ...(throttled ? { throttled } : {}),
      ...(before ? { before } : {}),
    };
    // Before it can be sent: a crash in between leaves one look too many, not one too few
    await by.store.expectLate(id);
    const moved = await by.store.move(request, {
      state: "authorized",
      progress: { ...counts, resent: (resent ?? 0) + 1, reservedFor: by.workerId },
      why: "nothing happened: it is sent once more",
    });
    if (moved.is !== "moved") continue;
    // Not before the move: the sweeper gives up what nobody here is going to send again
    by.mine.delete(id);
    const next = await advance(id, by);
    if (next.is === "wait") await by.wake(id);
  }
}
