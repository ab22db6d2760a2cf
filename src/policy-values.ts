import * as z from "zod";

/** The kinds of values in gatehouse.yml, each with the sentence that is shown when one is wrong. */

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
// setTimeout fires at once beyond 2^31-1 ms
const longestMs = 24 * 86_400_000;

/** `500ms`, `15s`, `2m`, `1h`, `7d` in milliseconds, or undefined. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,9}(?:\.\d{1,3})?)\s?(ms|s|m|h|d)$/.exec(text) ?? [];
  const milliseconds = Math.round(Number(amount ?? 0) * (unitMs[unit] ?? 0));
  return milliseconds > 0 && milliseconds <= longestMs ? milliseconds : undefined;
}

/** An object that refuses unknown keys; the message of that refusal is the list of the known ones. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(" ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined),
  });
}

const matching = (pattern: RegExp, sentence: string) => z.string().regex(pattern, sentence);

const durationSentence =
  "should be a length of time like 500ms, 15s, 2m, 1h or 7d (24 days at most)";

/** Becomes milliseconds. */
export const duration = z.string(durationSentence).transform((text, context) => {
  const milliseconds = parseDuration(text);
  if (milliseconds === undefined)
    context.issues.push({ code: "custom", message: durationSentence, input: text });
  return milliseconds ?? 0;
});

export const who = matching(
  /^(\*|[UWS][A-Z0-9]{2,20})$/,
  'should be a user id (U…), a user group id (S…) or "*", not a name; Slack shows ids under "Copy member ID" and in the address of a group',
);

export const channel = matching(
  /^[CG][A-Z0-9]{2,20}$/,
  "should be a channel id (C…), not a name; Slack shows it at the end of the channel's details",
);

export const glob = matching(
  /^[^\s,]{1,200}$/,
  "should be a name or a glob like prod-*, without spaces",
);

export const operation = matching(
  /^[a-z*?]{1,30}(\.[a-z*?-]{1,30})?$/,
  "should be a command with a dot, like vm.restore, or a glob like vm.*",
);

export const timeOfDay = matching(
  /^([01]\d|2[0-3]):[0-5]\d$/,
  'should be a time of day like "09:00"',
);

/** Becomes lower case without `0x`. */
export const measurement = matching(
  /^(0x)?[0-9a-fA-F]{2,256}$/,
  'should be hex digits; put it in quotes ("…") so that YAML reads it as text',
).transform((text) => text.toLowerCase().replace(/^0x/, ""));

export const timezone = z
  .string()
  .refine(
    (name) => /^[A-Za-z]/.test(name) && isTimezone(name),
    "isn't a time zone: write one like Europe/Paris",
  );

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export function count(least: number, most: number) {
  const sentence = `should be a whole number from ${least} to ${most}`;
  return z.int(sentence).min(least, sentence).max(most, sentence);
}

export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";

const weekdays: readonly Weekday[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const daysSentence = "should be days like daily, mon-fri or mon,wed,fri";

/** `daily`, `mon-fri`, `mon,wed`, `sat-mon,wed`. */
export const days = z.string(daysSentence).transform((text, context) => {
  const parts = text.toLowerCase().replaceAll(/\s/g, "").split(",");
  const wanted = parts.map((part) => daysOf(part));
  if (wanted.includes(undefined))
    context.issues.push({ code: "custom", message: daysSentence, input: text });
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
