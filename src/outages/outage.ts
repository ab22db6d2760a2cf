/** What Gatehouse can't do its work without, one by one. */
export const parts = ["slack", "redis", "service"] as const;
export type Part = (typeof parts)[number];

export const partNames: Readonly<Record<Part, string>> = {
  slack: "Slack",
  redis: "Redis",
  service: "The service",
};

/** A time in which one part was away. Times are Redis', in milliseconds. */
export interface Outage {
  /** The part and since when: `slack-1763600000000`. */
  id: string;
  part: Part;
  since: number;
  /** Undefined while it lasts. */
  until: number | undefined;
}

/** An outage that is over. */
export type Past = Outage & { until: number };

/** Something that a person asked for while Redis was away: nothing of it was written down or done. */
export interface RefusedAsk {
  id: string;
  channelId: string;
  userId: string;
  teamId: string;
  /** As it was typed; undefined for a press or a form. */
  words?: string | undefined;
}

/** As a recap tells of it: who it was, by name, where Slack could say. */
export type RefusedByName = RefusedAsk & { name?: string | undefined };

/** Times that follow from the one that policy sets, all in milliseconds. */
export interface Patience {
  /** Away for less than this is a hiccup. */
  outageMs: number;
  /** After the last failure that any process saw, for so long nobody must see another one. */
  quietMs: number;
  /** How long a recap waits for its requests to end. */
  endsMs: number;
}

export function patienceFor(outageMs: number): Patience {
  return { outageMs, quietMs: outageMs / 3, endsMs: 6 * outageMs };
}
