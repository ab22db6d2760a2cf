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
