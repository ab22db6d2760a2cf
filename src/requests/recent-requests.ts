import type { Journal } from "./journal/journal.ts";
import type { StoredRequest } from "./journal/record.ts";

/** At most `most`, newest first. */
export async function recentRequests(
  filter: { open?: boolean; requesterId?: string; targetId?: string; most: number },
  journal: Pick<Journal, "recentIds" | "getMany">,
): Promise<readonly StoredRequest[]> {
  const { open, requesterId, targetId, most } = filter;
  // Finished ones are filtered out below, so more are read
  const ids = await journal.recentIds(filter, open ? most * 5 : most);
  const requests = await journal.getMany(ids);
  return requests
    .filter(({ final, record }) => {
      if (open && final) return false;
      if (requesterId && record.requester.id !== requesterId) return false;
      return targetId === undefined || record.target.id === targetId;
    })
    .slice(0, most);
}
