import * as z from "zod";

const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
// Beyond 2^31-1 ms setTimeout fires at once
const longestMs = 24 * unitMs.d;

/** `500ms`, `15s`, `2m`, `1h`, `7d` in milliseconds, or undefined. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,9}(?:\.\d{1,3})?)\s?(ms|s|m|h|d)$/.exec(text) ?? [];
  const [, length = 0] = Object.entries(unitMs).find(([name]) => name === unit) ?? [];
  const milliseconds = Math.round(Number(amount ?? 0) * length);
  return milliseconds > 0 && milliseconds <= longestMs ? milliseconds : undefined;
}

/** As the file has it: 900,000 is 15m. */
export function durationWords(ms: number): string {
  const [unit, length] = Object.entries(unitMs).find(
    ([, each]) => ms >= each && ms % each === 0,
  ) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

/** An object that refuses unknown keys; the message of that issue is the list of known ones. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(" ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined),
  });
}

/** A text that becomes what `read` makes of it, with one sentence for whatever else stands there. */
export function readAs<T>(sentence: string, read: (text: string) => T | undefined) {
  return z.string(sentence).transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    context.issues.push({ code: "custom", message: sentence, input: text });
    return z.NEVER;
  });
}

export const matching = (pattern: RegExp, sentence: string) => z.string().regex(pattern, sentence);

/** Becomes milliseconds. */
export const duration = readAs(
  "must be a length of time like 500ms, 15s, 2m, 1h, or 7d (24 days at most)",
  parseDuration,
);

export const who = matching(
  /^(\*|[UWS][A-Z0-9]{2,20})$/,
  'must be a user ID (U…), a user group ID (S…), or "*", not a name; Slack shows IDs under "Copy member ID" and in the address of a group',
);

export const channel = matching(
  /^[CG][A-Z0-9]{2,20}$/,
  "must be a channel ID (C…), not a name; Slack shows it at the end of the channel's details",
);

export const glob = matching(
  /^[^\s,]{1,200}$/,
  "must be a name or a glob like prod-*, without spaces",
);

export const operation = matching(
  /^[a-z*?]{1,30}(\.[a-z*?-]{1,30}){0,2}$/,
  "must be a command with a dot, like vm.restore, or a glob like vm.*",
);

export const timeOfDay = matching(
  /^([01]\d|2[0-3]):[0-5]\d$/,
  'must be a time of day like "09:00"',
);

/** One value, or MRTD,RTMR0,RTMR1,RTMR2 of a TDX VM. Becomes lower case without `0x` and spaces. */
export const measurement = matching(
  /^\s*(0x)?[0-9a-fA-F]{96}(\s*,\s*(0x)?[0-9a-fA-F]{96}){0,3}\s*$/,
  'must be 48 bytes, which are 96 hex digits, or four such values with commas (MRTD,RTMR0,RTMR1,RTMR2); put it in quotes ("…") so that YAML reads it as text',
)
  .refine(
    (text) => [1, 4].includes(text.split(",").length),
    "must be one value, or four with commas: MRTD,RTMR0,RTMR1,RTMR2",
  )
  .transform((text) => text.toLowerCase().replaceAll(/\s|0x/g, ""));

export const timezone = z
  .string()
  .refine(
    (name) => /^[A-Za-z]/.test(name) && isTimezone(name),
    "must be a time zone like Europe/Paris",
  );

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export function count(least: number, most: number) {
  const sentence = `must be a whole number from ${least} to ${most}`;
  return z.int(sentence).min(least, sentence).max(most, sentence);
}

export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof weekdays)[number];

/** `daily`, `mon-fri`, `mon,wed`, `sat-mon,wed`. */
export const days = readAs("must be days like daily, mon-fri, or mon,wed,fri", (text) => {
  const parts = text.toLowerCase().replaceAll(/\s/g, "").split(",");
  const wanted = parts.map((part) => daysOf(part));
  if (wanted.includes(undefined)) return undefined;
  return weekdays.filter((day) => wanted.some((some) => some?.includes(day)));
});

function daysOf(part: string): readonly Weekday[] | undefined {
  if (part === "daily") return weekdays;
  const [from, to = from, ...rest] = part
    .split("-")
    .map((name) => weekdays.findIndex((day) => day === name));
  if (from === undefined || to === undefined || from < 0 || to < 0 || rest.length > 0)
    return undefined;
  const length = ((to - from + 7) % 7) + 1;
  return Array.from({ length }, (_, step) => weekdays[(from + step) % 7] ?? "mon");
}

const lasting = (text: string) => duration.prefault(text);

const lengths = section({
  /** One call to the compute service. */
  httpTimeout: lasting("15s"),
  /** From an unclear send until reads count: 2 s + httpTimeout + the longest delay seen until an effect is visible. */
  quiesce: lasting("60s"),
  /** From a send until its target must have settled; after that the outcome is unknown. */
  settleDeadline: lasting("15m"),
  /** From authorized until an unsent request expires. */
  staleAfter: lasting("10m"),
  /** How long a request waits for approval, unless its rule says. */
  approvalExpires: lasting("15m"),
  /** From a send until a sign that it began (REBOOTING, a newer timestamp) must be seen. */
  restartMark: lasting("2m"),
  /** The first poll of a target, and the longest time between two. */
  pollFirst: lasting("1s"),
  pollMost: lasting("10s"),
  /** Equal reads this far apart are stable. */
  stableGap: lasting("2s"),
  /** Longest time from claim to send. */
  claimWindow: lasting("2s"),
  /** Heartbeat interval. */
  heartbeat: lasting("3s"),
  /** How often open requests without a job are found. */
  sweep: lasting("10s"),
  /** How often a probe checks that the queue moves. */
  canary: lasting("60s"),
  /** Shorter outages of Slack, Redis, or the compute service get no recap. */
  outage: lasting("30s"),
  /** How long people and groups are cached. */
  peopleCache: lasting("60s"),
  inventoryRefresh: lasting("60s"),
  /** How often pinned VMs are attested. */
  driftWatch: lasting("15m"),
  /** Ages at which an unknown outcome gets a reminder. */
  reminders: z.array(duration).prefault(["15m", "1h", "4h"]),
});

type Lengths = z.output<typeof lengths>;
/** In milliseconds, and named so: `httpTimeoutMs` for `httpTimeout`. */
export type Timing = { readonly [Name in keyof Lengths as `${Name}Ms`]: Lengths[Name] };

export const timing = lengths.transform((read): Timing => {
  const named = Object.entries(read).map(([name, length]) => [`${name}Ms`, length]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.fromEntries forgets the names
  return Object.fromEntries(named) as Timing;
});
