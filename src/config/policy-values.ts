import * as z from "zod";
import { hexDigits } from "../text/hex-digits.ts";
import { plainForm } from "../text/fold.ts";
import { zoneCalled } from "../text/zone.ts";
import { parseDuration } from "./durations.ts";

/**
 * An object that refuses unknown keys. The message of that issue is the list of known keys,
 * separated by spaces.
 */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(" ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined),
  });
}

/** A text converted by `read`. One sentence describes every text that `read` refuses. */
export function readAs<T>(
  sentence: string | ((text: string) => string),
  read: (text: string) => T | undefined,
) {
  const isFixed = typeof sentence === "string";
  return z.string(isFixed ? sentence : undefined).transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    const message = isFixed ? sentence : sentence(text);
    context.issues.push({ code: "custom", message, input: text });
    return z.NEVER;
  });
}

export const matching = (pattern: RegExp, sentence: string) => z.string().regex(pattern, sentence);

export const webAddress = (sentence: string) => z.url({ protocol: /^https?$/, error: sentence });

/** A duration, converted to milliseconds. */
export const durationText = readAs(
  "must be a length of time like 500ms, 15s, 2m, 1h, or 7d (24 days at most)",
  parseDuration,
);

export const who = matching(
  /^(\*|[UWS][A-Z0-9]{2,20})$/,
  'must be a user ID (U…), a user group ID (S…), or "*", not a name; Slack shows IDs under "Copy member ID" and in the address of a group',
);

/** A person or a user group to mention. */
export const mentionable = matching(
  /^[UWS][A-Z0-9]{2,20}$/,
  'must be a user ID (U…) or a user group ID (S…), not a name; Slack shows IDs under "Copy member ID" and in the address of a group',
);

export const channel = matching(
  /^[CG][A-Z0-9]{2,20}$/,
  "must be a channel ID (C…), not a name; Slack shows it at the end of the channel's details",
);

/** Matches the signs that only regular expressions have. `web.*` is a glob, because names may have dots. */
const expression = /^\^|\$$|[\\[\](){}|]|\.\+|(?:^|[^\p{L}\p{N}])\.\*/u;

/** Refuses what can match no name, or not the names that are meant. */
const globOf = (pattern: RegExp, sentence: string) =>
  z
    .string()
    .refine((text) => pattern.test(plainForm(text)), { error: sentence, abort: true })
    .refine((text) => !expression.test(plainForm(text)), {
      error:
        "must be a name or a glob, not a regular expression: * stands for any text, ? for one character",
      abort: true,
    });

export const glob = globOf(
  /^[^\s,]{1,200}$/,
  "must be a name or a glob like prod-*, without spaces",
).refine(
  (text) => /^[^/]+(?:\/[^/]+)?$/.test(plainForm(text)),
  "must be a name, or project/name with one slash and something on both sides: otherwise it matches nothing",
);

export const operation = matching(
  /^[a-z*?]{1,30}(\.[a-z*?-]{1,30}){0,2}$/,
  "must be a command with a dot, like vm.stop, or a glob like vm.*",
);

export const timeOfDay = matching(
  /^([01]\d|2[0-3]):[0-5]\d$/,
  'must be a time of day like "09:00"',
);

/**
 * One value, or MRTD,RTMR0,RTMR1,RTMR2 of a TDX VM, in hex as tools write it. It is converted to
 * lower-case digits.
 */
export const measurement = z.string().transform((text, context) => {
  const values = text.split(",").map((value) => hexDigits(value) ?? "");
  if (values.length > 4 || values.some((digits) => digits.length !== 96))
    context.addIssue(
      'must be 48 bytes, which are 96 hex digits, or four such values with commas (MRTD,RTMR0,RTMR1,RTMR2); put it in quotes ("…") so that YAML reads it as text',
    );
  else if (![1, 4].includes(values.length))
    context.addIssue("must be one value, or four with commas: MRTD,RTMR0,RTMR1,RTMR2");
  return values.join(",");
});

/** An abbreviation counts where it has one meaning; the `IST` of Intl is only India's. */
export const timezone = readAs("must be a time zone like Europe/Paris", (text) => {
  const meant = zoneCalled(text);
  return meant?.match === "one" ? meant.zone : undefined;
});

export function count(least: number, most: number) {
  const sentence = `must be a whole number from ${least} to ${most}`;
  return z.int(sentence).min(least, sentence).max(most, sentence);
}

export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof weekdays)[number];

/** Days as `daily`, `weekdays`, `mon-fri`, `mon,wed`, or `sat-mon,wed`. */
export const days = readAs("must be days like daily, mon-fri, or mon,wed,fri", (text) => {
  const parts = text.toLowerCase().replaceAll(/\s/g, "").split(",");
  const wanted = parts.map((part) => daysOf(part));
  if (wanted.includes(undefined)) return undefined;
  return weekdays.filter((day) => wanted.some((some) => some?.includes(day)));
});

function daysOf(part: string): readonly Weekday[] | undefined {
  if (part === "daily") return weekdays;
  if (part === "weekdays") return weekdays.slice(0, 5);
  if (part === "weekends") return weekdays.slice(5);
  const [from, to = from, ...rest] = part
    .split("-")
    .map((name) => weekdays.findIndex((day) => day === name));
  if (from === undefined || to === undefined || from < 0 || to < 0 || rest.length > 0)
    return undefined;
  const length = ((to - from + 7) % 7) + 1;
  return Array.from({ length }, (_, step) => weekdays[(from + step) % 7] ?? "mon");
}

export const lasting = (text: string) => durationText.prefault(text);

export const some = <Item extends z.ZodType>(item: Item, noun: string) =>
  z.array(item).min(1, `must name at least one ${noun}`);

export const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, { error: `must be one of ${names.join(", ")}` });

export const teamName = matching(
  /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,39}$/,
  "must be a team's name of letters, digits, - and _",
);

export const teamProject = globOf(
  /^[^\s,/]{1,200}$/,
  "must be a project's ID, its name, or a glob like payments-*, without spaces or slashes",
);
