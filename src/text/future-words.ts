import { plainForm } from "./fold.ts";

const number =
  "(?:\\d+(?:[.,]\\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty|half an?|a (?:few|couple(?: of)?))";
const unit =
  "(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|months?|moments?|while|bit)";
const weekday = "(?:mon|tues|wednes|thurs|fri|satur|sun)day";
const shortDay = `(?:${weekday}|mon|tue|wed|thu|fri|sat|sun)s?`;
const partOfDay = "(?:morning|noon|afternoon|evening|night)";
const clock = "(?:\\d{1,2}(?:[:.]\\d\\d)? ?[ap]\\.?m\\.?|\\d{1,2}[:h]\\d\\d|noon|midnight)";
const date = "\\d{4}-\\d\\d-\\d\\d(?:t\\S+)?";

/** Words that name a time wherever they stand after the first name. */
const certain = [
  `(?:in|after|within) (?:about |around )?${number} ?${unit}`,
  `${number} ?${unit} (?:from now|later|after .*)`,
  `(?:in|within|during|over) the (?:next )?(?:${partOfDay}|${number} ?${unit}|${unit})`,
  `every (?:other )?(?:${number} ?)?${unit}`,
  "(?:after|outside|off) (?:business |working |office )?hours",
  `(?:at|by|around|before|after|until|from) (?:about )?(?:${clock}|\\d{1,2}|\\d{4}|${date}|lunch|work)`,
  `(?:on|next|this|every|each|coming|by|until) (?:the )?(?:${shortDay}|${date}|${partOfDay}|hours?|days?|weeks?|weekends?|months?|time)`,
  "(?:when|once|if|unless|until|as soon as) \\S.*",
  `(?:tomorrow|tmrw|tonight|later|soon|overnight)(?: ${partOfDay})?`,
  "at \\d{1,2}:?\\d\\d",
  clock,
].join("|");
/** Words that name a time where nothing but names may stand. Elsewhere they can be a name, as of a snapshot. */
const probable = [`(?:today|${weekday})(?: ${partOfDay})?`, "(?:daily|hourly|nightly|weekly)"].join(
  "|",
);

const zoneOrMore = `(?: (?:at|on|by|around)? ?(?:${clock}|\\d{1,2}|${shortDay}|today|tomorrow|tonight))*(?: [a-z]{2,4}t)?`;
const compile = (times: string) =>
  new RegExp(`(?<!\\S)(?:${times})${zoneOrMore}(?=[.,!?]*(?:\\s|$))`, "iu");
const certainTime = compile(certain);
const anyTime = compile(`${certain}|${probable}`);

/**
 * The words of a sentence that name a time or a condition for it: `in 10 minutes`, `at 5pm`,
 * `tomorrow`, `when it is idle`. With `onlyNames`, words count that could also be a text.
 */
export function timeNamedIn(
  text: string,
  { onlyNames }: { onlyNames: boolean },
): string | undefined {
  const spoken = plainForm(text).replaceAll(/\s+/g, " ").trim();
  return (onlyNames ? anyTime : certainTime).exec(spoken)?.[0];
}
