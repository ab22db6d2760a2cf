import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { firstFew, md, name as quoted } from "../../messages/markdown.ts";
import { textAt, textsAt } from "../json.ts";

/**
 * The members who joined a user group and who left it, by user ID. Reads `subteam_members_changed`
 * and `subteam_updated` (https://docs.slack.dev/reference/events/subteam_members_changed). Only the
 * first says who; the other names the group alone.
 */
export function readGroupChange(event: unknown) {
  return {
    groupId: textAt(event, "subteam_id") || textAt(event, "subteam", "id"),
    came: textsAt(event, "added_users"),
    left: textsAt(event, "removed_users"),
  };
}

const maxNamed = 20;

/** A message for the audit channel. People are named without mentioning them. */
export function groupNews(
  { groupId, came, left }: ReturnType<typeof readGroupChange>,
  nameOf: (id: string) => string | undefined,
): Message {
  const named = (ids: readonly string[]) =>
    firstFew(
      ids.map((id) => nameOf(id) ?? id),
      maxNamed,
    );
  const moves = [
    came.length > 0 && `${named(came)} joined`,
    left.length > 0 && `${named(left)} left`,
  ].filter((move) => move !== false);
  const group = nameOf(groupId);
  const called = group === undefined ? quoted(groupId) : md`${group} (${quoted(groupId)})`;
  return sentence(
    md`👥 The user group ${called}, which the policy names, changed: ${moves.join("; ")}. It counts at once.`,
  );
}
