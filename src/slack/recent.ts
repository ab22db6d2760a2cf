import type { RequestFilter, RequestSummary } from "../registry/define.ts";
import type { Store } from "../requests/store.ts";

/** Requests as lists show them, newest first. */
export async function recentRequests(
  filter: RequestFilter,
  store: Store,
): Promise<readonly RequestSummary[]> {
  const most = filter.most ?? 20;
  // Ended ones are skipped, so more are read than shown
  const ids = await store.recentIds(filter, filter.open ? most * 5 : most);
  const requests = await store.getMany(ids);
  return requests
    .filter(({ final, record }) => {
      if (filter.open && final) return false;
      if (filter.requesterId && record.requester.id !== filter.requesterId) return false;
      return filter.targetId === undefined || record.target.id === filter.targetId;
    })
    .slice(0, most)
    .map(({ record, state, changedAt, delivered }) => ({
      id: record.id,
      command: record.command,
      target: record.target,
      requesterId: record.requester.id,
      channelId: record.channelId,
      state,
      createdAt: record.createdAt,
      changedAt,
      ...(delivered.card ? { messageTs: delivered.card.ts } : {}),
    }));
}
