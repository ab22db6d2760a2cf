import { UserError } from "../errors.ts";
import type { DigestRule } from "../policy-file.ts";
import { channel, days, timeOfDay, timezone } from "../policy-values.ts";

export interface ScheduleWords {
  channel?: string;
  at?: string;
  timezone?: string;
  days?: DigestRule["days"];
}

/**
 * `09:00 Europe/Paris mon-fri`, in any order, every part optional, a channel too (`C02STATUS`, or as Slack writes a link
 * to one). Throws UserError for a word that is none of them, or a second one of its kind.
 */
export function readSchedule(text: string): ScheduleWords {
  const words: ScheduleWords = {};
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const part = partOf(word);
    if (!part) throw wrong(word);
    const [key = ""] = Object.keys(part);
    if (Object.hasOwn(words, key))
      throw new UserError(`${word.slice(0, 40)} is one too many.`, usage);
    Object.assign(words, part);
  }
  return words;
}

const usage =
  "It is written `/gatehouse digest on 09:00 Europe/Paris mon-fri`; another channel goes last, by its id.";

function wrong(word: string): UserError {
  const shown = word.slice(0, 40);
  if (word.startsWith("#") || word.startsWith("@")) {
    return new UserError(
      `I can't tell which channel ${shown} is.`,
      "Its id stands at the end of the channel's details: `C02STATUS`.",
    );
  }
  return new UserError(`${shown} is no time, time zone, day or channel.`, usage);
}

function partOf(word: string): ScheduleWords | undefined {
  const time = timeOfDay.safeParse(/^\d:/.test(word) ? `0${word}` : word);
  if (time.success) return { at: time.data };
  const place = channel.safeParse(/^<#([CG][A-Z0-9]+)(?:\|[^>]*)?>$/.exec(word)?.[1] ?? word);
  if (place.success) return { channel: place.data };
  const named = days.safeParse(word);
  if (named.success) return { days: named.data };
  const zone = timezone.safeParse(word);
  if (!zone.success) return undefined;
  return {
    timezone: new Intl.DateTimeFormat("en", { timeZone: zone.data }).resolvedOptions().timeZone,
  };
}
