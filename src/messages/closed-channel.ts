import { type Markdown, md } from "./text.ts";

/** How a post is refused, in Slack's place, in a channel that another company reads too. */
export const sharedOutside = "shared_with_another_company";

/** What opens a channel that took no post, by how that was refused. */
export function howToOpen(error: string): Markdown {
  return error === sharedOutside
    ? md`It is shared with another company: \`sharedChannels\` in gatehouse.yml opens it.`
    : md`\`/invite @gatehouse\` changes that.`;
}
