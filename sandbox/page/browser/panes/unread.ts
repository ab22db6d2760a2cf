import type { Seen, SeenChannel } from "../../../slack/seen.ts";

/** Up to where each person has read each channel, as ts, for as long as the browser tab lives. */
const readTo = new Map<string, string>(Object.entries(kept()));
let began: string | undefined;

function kept(): Record<string, string> {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem("read") ?? "{}");
    return typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, ts]) => [key, String(ts)]))
      : {};
  } catch {
    return {};
  }
}

export function markRead(seen: Seen, channel: SeenChannel): void {
  const last = channel.messages.at(-1)?.ts;
  const key = `${seen.me.id} ${channel.id}`;
  if (last === undefined || readTo.get(key) === last) return;
  readTo.set(key, last);
  sessionStorage.setItem("read", JSON.stringify(Object.fromEntries(readTo)));
}

/** What this person hasn't seen of a channel. What was there when the page was opened counts as read. */
export function unreadIn(seen: Seen, channel: SeenChannel): { any: boolean; mentions: number } {
  began ??= String(seen.at / 1000);
  const since = readTo.get(`${seen.me.id} ${channel.id}`) ?? began;
  const any = channel.messages.some(
    (message) => message.ts > since && message.author.id !== seen.me.id,
  );
  const mentions = seen.inbox.filter(
    (call) => call.channelId === channel.id && call.ts > since,
  ).length;
  return { any, mentions };
}
