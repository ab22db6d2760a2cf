import { fold } from "../text/fold.ts";
import { at, listAt, textAt } from "./json.ts";
import { whyOf } from "./web-answer.ts";
import type { Web } from "./web.ts";

export type ChannelFound =
  | { kind: "found"; id: string }
  | { kind: "none" }
  /** Slack didn't answer, or didn't allow the question. */
  | { kind: "unclear"; why: string };

/** More channels than this take too many calls. They can be named by their ID. */
const mostPages = 10;
const perPage = 999;

const channelId = /^[CG][A-Z0-9]{2,20}$/;

/** The channel that a word names: its ID, or its name after a `#`. */
export async function findChannel(web: Web, word: string): Promise<ChannelFound> {
  const called = word.replace(/^#/, "");
  if (channelId.test(called)) {
    const answer = await web.call("conversations.info", { channel: called });
    if (answer.ok) return { kind: "found", id: called };
    const why = whyOf(answer);
    return why === "channel_not_found" ? { kind: "none" } : { kind: "unclear", why };
  }
  return findByName(web, fold(called));
}

/**
 * Whether Gatehouse may post in a channel: it is a member, and no other company shares the channel,
 * unless that is allowed. Undefined when Slack doesn't say.
 */
export async function mayPostIn(
  web: Web,
  channel: string,
  sharedChannels: readonly string[],
): Promise<boolean | undefined> {
  const answer = await web.call("conversations.info", { channel });
  if (!answer.ok) return whyOf(answer) === "channel_not_found" ? false : undefined;
  return whyClosed(answer.data, channel, sharedChannels) === undefined;
}

/**
 * Why nothing is posted in a channel that Slack describes (`conversations.info`): another company
 * shares it, or Gatehouse is no member. Undefined where it may post.
 */
export function whyClosed(
  described: unknown,
  channel: string,
  sharedChannels: readonly string[],
): "shared" | "not_in_channel" | undefined {
  const hasFlag = (name: string) => at(described, "channel", name) === true;
  if (hasFlag("is_ext_shared") && !sharedChannels.includes(channel)) return "shared";
  return hasFlag("is_member") ? undefined : "not_in_channel";
}

async function findByName(web: Web, name: string): Promise<ChannelFound> {
  let cursor = "";
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await web.call("conversations.list", {
      types: "public_channel,private_channel",
      exclude_archived: true,
      limit: perPage,
      cursor,
    });
    if (!answer.ok) return { kind: "unclear", why: whyOf(answer) };
    const channels = listAt(answer.data, "channels");
    const match = channels.find((channel) => fold(textAt(channel, "name")) === name);
    if (match !== undefined) return { kind: "found", id: textAt(match, "id") };
    cursor = textAt(answer.data, "response_metadata", "next_cursor");
    if (cursor === "") return { kind: "none" };
  }
  return { kind: "unclear", why: "there are too many channels" };
}
