import type { InventoryState } from "../fleet/inventory/inventory.ts";
import { type Markdown, duration, firstFew, md, plain, when } from "../messages/markdown.ts";

/**
 * When a list was read, as an age or, if its answer is kept (`isKept`), as a time, and what the
 * list lacks.
 */
export function inventoryAge(
  { refreshedAt, stale, unread, gaps = [] }: InventoryState,
  now: number,
  how: { isKept?: boolean } = {},
): Markdown {
  if (refreshedAt === undefined) return md`⚠️ The compute service has not been read yet.`;
  const age = how.isKept
    ? md`Statuses read at ${when(refreshedAt)}.`
    : md`Statuses read ${duration(now - refreshedAt)} ago.`;
  const old = stale ? md` ⚠️ Nothing newer could be read, so this may be outdated.` : md``;
  const failed = unread.length > 0 ? md` ⚠️ Could not be read: ${firstFew(unread, 5)}.` : md``;
  const short = gaps.length > 0 ? md` ⚠️ Incomplete: ${plain(gaps.join(". "), 600)}.` : md``;
  return md`${age}${old}${failed}${short}`;
}
