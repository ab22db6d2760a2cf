import type { Seen, SeenChannel } from "../../../slack/seen.ts";

/** What of the workspace is on the screen. It stands in the address, so that a reload or a link comes back to it. */
export interface Place {
  /** Id or handle of the person one is. */
  as?: string;
  /** Id or name. */
  channel?: string;
  /** The ts of the message whose thread is open. */
  thread?: string;
  home?: boolean;
  /** Who is who, and what to try. */
  guide?: boolean;
  /** The panel beside the rest is open. */
  weather?: boolean;
}

export function readPlace(hash: string): Place {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const one = (name: string) => words.get(name) ?? undefined;
  const [as, channel, thread] = [one("as"), one("channel"), one("thread")];
  return {
    ...(as === undefined ? {} : { as }),
    ...(channel === undefined ? {} : { channel }),
    ...(thread === undefined ? {} : { thread }),
    ...(words.has("home") ? { home: true } : {}),
    ...(words.has("guide") ? { guide: true } : {}),
    ...(words.has("weather") ? { weather: true } : {}),
  };
}

export function writePlace(place: Place): string {
  const words = new URLSearchParams();
  for (const key of ["as", "channel", "thread"] as const)
    if (place[key] !== undefined) words.set(key, place[key]);
  for (const key of ["home", "guide", "weather"] as const) if (place[key]) words.set(key, "");
  return `#${words}`;
}

/** The channel meant, or else the first one this person is in. */
export function channelAt(place: Place, { channels }: Seen): SeenChannel | undefined {
  return (
    channels.find(({ id, name }) => id === place.channel || name === place.channel) ??
    channels.find(({ member, kind }) => member && kind !== "direct") ??
    channels[0]
  );
}

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
