import { Markdown, md } from "./markdown.ts";

/**
 * The error that Gatehouse uses, in Slack's place, for a post to a channel that another company
 * reads, too.
 */
export const sharedOutside = "shared_with_another_company";

/** The error for a group direct message whose members the app isn't allowed to see. */
export const unseenGroup = "group_message_unseen";

/**
 * How people can make a channel accept posts, by the error with which it refused one. Undefined for
 * an error that isn't about the channel.
 */
export function howToOpen(error: string): Markdown | undefined {
  if (error === sharedOutside)
    return md`It is shared with another company: \`sharedChannels\` in gatehouse.yml opens it.`;
  if (error === unseenGroup)
    return md`The app lacks the scope \`mpim:read\`, so Gatehouse can't see whether another company reads it. Whoever runs Gatehouse can install the app again from manifest.yml.`;
  if (error === "is_archived") return md`It is archived.`;
  if (error === "not_in_channel" || error === "channel_not_found")
    return md`\`/invite @gatehouse\` changes that.`;
  if (error === "no_permission" || error.startsWith("restricted_action"))
    return md`The settings of the workspace or of the channel decide who posts there.`;
  return undefined;
}
