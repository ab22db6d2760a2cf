import { type Message, notice } from "../../messages/message.ts";
import { type Markdown, md, name } from "../../messages/text.ts";
import { textAt, textsAt } from "../web.ts";

/** Who came into a user group and who left it, as Slack's event says: user IDs. */
export interface GroupChange {
  groupId: string;
  came: readonly string[];
  left: readonly string[];
}

/**
 * Reads `subteam_members_changed` and `subteam_updated` (https://docs.slack.dev/reference/events/subteam_members_changed).
 * Only the first says who; the other, and any unknown one, names the group alone.
 */
export function readGroupChange(event: unknown): GroupChange {
  return {
    groupId: textAt(event, "subteam_id") || textAt(event, "subteam", "id"),
    came: textsAt(event, "added_users"),
    left: textsAt(event, "removed_users"),
  };
}

/** For the audit channel: by name, without a mention of anyone. */
export function groupNews(
  { groupId, came, left }: GroupChange,
  nameOf: (id: string) => string | undefined,
): Message {
  const named = (ids: readonly string[]) =>
    md`${ids
      .slice(0, maxNamed)
      .map((id) => nameOf(id) ?? id)
      .join(", ")}${ids.length > maxNamed ? ` and ${ids.length - maxNamed} more` : ""}`;
  const group = nameOf(groupId);
  const called = group === undefined ? name(groupId) : md`${group} (${name(groupId)})`;
  return notice(
    md`👥 The user group ${called}, which the policy names, changed: ${sentence(named(came), came.length, named(left), left.length)}. It counts at once.`,
  );
}

function sentence(came: Markdown, cameCount: number, left: Markdown, leftCount: number): Markdown {
  if (leftCount === 0) return md`${came} joined`;
  return cameCount === 0 ? md`${left} left` : md`${came} joined; ${left} left`;
}

const maxNamed = 20;
