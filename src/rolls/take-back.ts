import type { StoredRequest } from "../requests/record.ts";
import type { Store } from "../requests/store.ts";
import type { StoredRoll } from "./roll.ts";

/** The reason in the journal of a request that a stopped roll took back. */
export const takenBack = "the roll was stopped before it began";

/** What was not sent yet need not be sent any more. */
export async function takeBack(request: StoredRequest, store: Pick<Store, "move">): Promise<void> {
  if (request.state !== "authorized") return;
  await store.move(request, {
    state: "cancelled",
    progress: { ...request.progress, why: takenBack },
    why: takenBack,
  });
}

/**
 * Everything of a stopped roll that waits in the queue. Whoever stops it does so at once: a worker that was dead by then
 * might take it from the queue before it looks after the roll.
 */
export async function takeBackOpen(
  { progress }: Pick<StoredRoll, "progress">,
  store: Pick<Store, "getMany" | "move">,
): Promise<void> {
  const open = await store.getMany(progress.open.map(({ request }) => request));
  await Promise.all(open.map((request) => takeBack(request, store)));
}
