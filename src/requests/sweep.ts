import type { Performing } from "./performing.ts";
import type { StoredRequest } from "./record.ts";
import { watchKeyOf } from "./record.ts";

/** How many requests are looked at in one go. */
const page = 200;

/**
 * Looks after every open request that nothing else is going to move: a lost job, a dead worker, a time that has come.
 * Running it twice, or in two processes, is harmless: it rings and moves, it never sends.
 */
export async function sweep(by: Performing): Promise<{ open: number }> {
  const ids = await by.store.openIds();
  const watchKeys = new Set<string>();
  for (let start = 0; start < ids.length; start += page) {
    for (const request of await by.store.getMany(ids.slice(start, start + page))) {
      await sweepOne(request, watchKeys, by);
    }
  }
  for (const watchKey of watchKeys) await by.watch(watchKey, false);
  await by.store.trim();
  return { open: ids.length };
}

async function sweepOne(
  request: StoredRequest,
  watchKeys: Set<string>,
  by: Performing,
): Promise<void> {
  switch (request.state) {
    case "authorized":
      return by.wake(request.record.id);
    case "sending":
      watchKeys.add(watchKeyOf(request.record));
      return by.wake(request.record.id);
    case "accepted":
    case "unclear":
      watchKeys.add(watchKeyOf(request.record));
      return;
    case "not-applied":
      return giveUpResend(request, by);
    case "draft":
      return expireUnanswered(request, by);
    case "unknown":
      return remind(request, by);
    default:
      return;
  }
}

/** A second send is only for the worker that made the first. When that one is gone, the request ends here. */
async function giveUpResend(request: StoredRequest, by: Performing): Promise<void> {
  const { id } = request.record;
  if (request.owner === by.workerId) {
    if (by.mine.has(id) || by.calling.has(id)) return;
  } else if (request.owner && (await by.isAlive(request.owner))) return;
  const { mayResend: _over, ...kept } = request.progress;
  const hint = "It was not sent again, because the worker that sent it is gone.";
  await by.store.move(request, {
    state: "not-applied",
    progress: { ...kept, hint },
    why: "nothing happened",
  });
}

/** An unknown outcome is never resolved by itself; it is brought up again at set times. */
async function remind(request: StoredRequest, by: Performing): Promise<void> {
  const age = (await by.store.now()) - (request.progress.unknownSince ?? request.changedAt);
  const due = by.policy.timing.remindersMs.filter((after) => age >= after).length;
  if (due <= (request.progress.reminders ?? 0)) return;
  await by.store.move(request, {
    state: "unknown",
    progress: { ...request.progress, reminders: due },
    why: "still unknown",
  });
}

/** No answer is a no. An expired request is never revived: asking again makes a new one. */
async function expireUnanswered(request: StoredRequest, by: Performing): Promise<void> {
  const { approval, policyVersion } = request.record;
  if (policyVersion !== by.policyVersion) {
    const why = "the policy changed while this waited for approval";
    const hint = "Ask again: the new policy decides.";
    await by.store.move(request, {
      state: "cancelled",
      progress: { ...request.progress, why, hint },
      why,
    });
    return;
  }
  if (approval && approval.expiresAt > (await by.store.now())) return;
  const why = "nobody approved it in time";
  await by.store.move(request, { state: "expired", progress: { ...request.progress, why }, why });
}
