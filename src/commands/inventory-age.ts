import type { InventoryState } from "../inventory/inventory.ts";
import { duration, type Markdown, md } from "../messages/text.ts";

/** How fresh a list is, and what it lacks: never an invented zero. */
export function inventoryAge(
  { refreshedAt, stale, unread }: InventoryState,
  now: number,
): Markdown {
  if (refreshedAt === undefined) return md`⚠️ The service has not been read yet.`;
  const age = md`Names read ${duration(Math.max(1000, now - refreshedAt))} ago.`;
  const old = stale ? md` ⚠️ Nothing newer could be read, so this may be old.` : md``;
  if (unread.length === 0) return md`${age}${old}`;
  const shown = unread.slice(0, 5).join(", ");
  return md`${age}${old} ⚠️ Not readable: ${shown}${unread.length > 5 ? ` and ${unread.length - 5} more` : ""}.`;
}
