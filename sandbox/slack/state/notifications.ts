import { isFields } from "../fields.ts";
import type { SeenNotification } from "../seen.ts";
import { isHuman } from "./people.ts";
import type { Message, Person } from "./records.ts";
import type { Workspace } from "./workspace.ts";

/** Notes whom a new message notifies, each person at most once. Edits and ephemerals never come here. */
export function notify(workspace: Workspace, message: Message): void {
  const channel = workspace.channels.get(message.channelId);
  if (!channel) return;
  const called = mentionsOf([message.text, message.blocks, message.attachments]);
  for (const id of channel.memberIds) {
    const person = workspace.people.get(id);
    if (!person || !isHuman(person) || !person.active || id === message.userId) continue;
    const because = reason(workspace, person, called, channel.kind === "direct");
    if (!because) continue;
    const list = workspace.notifications.get(id) ?? [];
    list.push({
      at: workspace.now(),
      channelId: channel.id,
      ts: message.ts,
      text: message.text || filesOf(workspace, message),
      because,
    });
    workspace.notifications.set(id, list);
  }
}

/** A file without words is notified by its title. */
function filesOf({ files }: Workspace, { fileIds }: Message): string {
  const titles = fileIds.flatMap((id) => files.get(id)?.title ?? []);
  return titles.length === 0 ? "" : `Sent a file: ${titles.join(", ")}`;
}

function reason(
  workspace: Workspace,
  person: Person,
  called: ReadonlySet<string>,
  direct: boolean,
): SeenNotification["because"] | undefined {
  if (called.has(person.id)) return "mention";
  for (const id of called)
    if (workspace.groups.get(id)?.userIds.includes(person.id)) return "group";
  if (called.has("everyone")) return "everyone";
  return direct ? "direct" : undefined;
}

/**
 * Who is called by anything in there: user ids, group ids, and "everyone" for the three that ping a whole channel.
 * Only what Slack parses counts: mrkdwn text objects, bare texts and the mention elements of rich text.
 */
export function mentionsOf(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === "string") {
    for (const [, user] of value.matchAll(/<@([UW][A-Z0-9]+)(?:\|[^>]*)?>/g)) found.add(user ?? "");
    for (const [, group] of value.matchAll(/<!subteam\^(S[A-Z0-9]+)(?:\|[^>]*)?>/g))
      found.add(group ?? "");
    if (/<!(?:channel|here|everyone)(?:\|[^>]*)?>/.test(value)) found.add("everyone");
  } else if (Array.isArray(value)) {
    for (const item of value) mentionsOf(item, found);
  } else if (isFields(value)) {
    const type = value["type"];
    if (type === "user" && typeof value["user_id"] === "string") found.add(value["user_id"]);
    if (type === "usergroup" && typeof value["usergroup_id"] === "string")
      found.add(value["usergroup_id"]);
    if (type === "broadcast") found.add("everyone");
    if (type === "mrkdwn" || type === "markdown") mentionsOf(value["text"], found);
    else if (type !== "plain_text" && type !== "button" && type !== "text") {
      for (const inner of Object.values(value))
        if (typeof inner === "object") mentionsOf(inner, found);
      if (typeof value["text"] === "string" && type === undefined) mentionsOf(value["text"], found);
    }
  }
  return found;
}

/** Shows a person a line of Slack's own. The newest 50 are kept. */
export function showToast(
  workspace: Workspace,
  userId: string,
  toast: { text: string; error?: string; channelId?: string },
): void {
  const list = workspace.toasts.get(userId) ?? [];
  workspace.toasts.set(userId, [
    ...list.slice(-49),
    { ...toast, id: workspace.newTs(), at: workspace.now() },
  ]);
  workspace.changed();
}
