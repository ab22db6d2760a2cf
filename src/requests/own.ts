import type { Performing } from "./performing.ts";
import type { Progress, StoredRequest } from "./record.ts";
import type { State } from "./states.ts";
import type { Moved } from "./store.ts";

/**
 * The move of the one who sent. It decides even when a successor has meanwhile moved the request to `unclear`, or has
 * read that nothing happened while the call was still to end: same attempt, same owner. What watchers noted since the claim
 * is kept, but for what they read of a call that had not ended.
 */
export async function moveOwn(
  claimed: StoredRequest,
  to: { state: State; learned: Partial<Progress>; why: string },
  by: Performing,
): Promise<Moved> {
  let now: StoredRequest | undefined = claimed;
  for (let tries = 0; tries < 20 && now; tries++) {
    const isOurs = now.attempt === claimed.attempt && now.owner === by.workerId;
    if (!isOurs || now.final || !["sending", "unclear", "not-applied"].includes(now.state)) {
      return { is: "changed" };
    }
    const mark = to.learned.mark ?? now.progress.mark;
    const { quietSince: _early, quietLooks: _few, mayResend: _not, ...noted } = now.progress;
    const progress = { ...noted, ...to.learned, ...(mark ? { mark } : {}) };
    const moved = await by.store.move(now, { state: to.state, progress, why: to.why });
    if (moved.is !== "changed") return moved;
    now = await by.store.get(claimed.record.id);
  }
  return { is: "gone" };
}

/** Proven that nothing left us, or nothing came of it: it may be claimed again after `inMs`. */
export async function giveBack(
  claimed: StoredRequest,
  { inMs, ...learned }: Partial<Progress> & { why: string; inMs: number },
  by: Performing,
): Promise<void> {
  const notBefore = (await by.store.now()) + inMs;
  const { sentAt: _notSent, ...before } = claimed.progress;
  await moveOwn(
    { ...claimed, progress: before },
    { state: "authorized", learned: { ...learned, notBefore }, why: learned.why },
    by,
  );
}
