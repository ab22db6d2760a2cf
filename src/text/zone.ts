import { UserError } from "../errors.ts";
import { fold, plainForm } from "./fold.ts";
import { parseClock } from "./parse-clock.ts";

/** A time zone with a name that people know: `Central European time`, by the clocks of a place. */
interface NamedZone {
  name: string;
  zone: string;
}

export type ZoneMeant =
  /** `name` is set where the word was an abbreviation. */
  | { match: "one"; zone: string; name?: string }
  /** The abbreviation has several meanings, so a person must say which. */
  | { match: "several"; zones: readonly NamedZone[] };

const named = (name: string, zone: string): NamedZone => ({ name, zone });

const eastern = named("US Eastern time", "America/New_York");
const central = named("US Central time", "America/Chicago");
const mountain = named("US Mountain time", "America/Denver");
const pacific = named("US Pacific time", "America/Los_Angeles");
const atlantic = named("Atlantic time", "America/Halifax");
const western = named("Western European time", "Europe/Lisbon");
const middle = named("Central European time", "Europe/Paris");
const east = named("Eastern European time", "Europe/Athens");
const sydney = named("Australian Eastern time", "Australia/Sydney");
const cuba = named("Cuba time", "America/Havana");
const arabia = named("Arabia time", "Asia/Riyadh");
const utc = named("Coordinated Universal Time", "UTC");

/**
 * What abbreviations of time zones mean in use. Intl knows some of them too, and gives each one
 * meaning: there `IST` is India's and `BST` is Bangladesh's.
 */
const abbreviations = new Map<string, readonly NamedZone[]>([
  ["utc", [utc]],
  ["gmt", [named("Greenwich Mean Time", "UTC")]],
  ["z", [utc]],
  ["wet", [western]],
  ["west", [western]],
  ["cet", [middle]],
  ["cest", [middle]],
  ["mez", [middle]],
  ["mesz", [middle]],
  ["eet", [east]],
  ["eest", [east]],
  ["msk", [named("Moscow time", "Europe/Moscow")]],
  ["trt", [named("Turkey time", "Europe/Istanbul")]],
  ["et", [eastern]],
  ["est", [eastern]],
  ["edt", [eastern]],
  ["ct", [central]],
  ["mt", [mountain]],
  ["mdt", [mountain]],
  ["pt", [pacific]],
  ["pdt", [pacific]],
  ["akst", [named("Alaska time", "America/Anchorage")]],
  ["akdt", [named("Alaska time", "America/Anchorage")]],
  ["hst", [named("Hawaii time", "Pacific/Honolulu")]],
  ["brt", [named("Brasília time", "America/Sao_Paulo")]],
  ["art", [named("Argentina time", "America/Argentina/Buenos_Aires")]],
  ["sast", [named("South Africa time", "Africa/Johannesburg")]],
  ["eat", [named("East Africa time", "Africa/Nairobi")]],
  ["wat", [named("West Africa time", "Africa/Lagos")]],
  ["pkt", [named("Pakistan time", "Asia/Karachi")]],
  ["npt", [named("Nepal time", "Asia/Kathmandu")]],
  ["ict", [named("Indochina time", "Asia/Bangkok")]],
  ["wib", [named("Western Indonesia time", "Asia/Jakarta")]],
  ["sgt", [named("Singapore time", "Asia/Singapore")]],
  ["hkt", [named("Hong Kong time", "Asia/Hong_Kong")]],
  ["jst", [named("Japan time", "Asia/Tokyo")]],
  ["kst", [named("Korea time", "Asia/Seoul")]],
  ["awst", [named("Australian Western time", "Australia/Perth")]],
  ["acst", [named("Australian Central time", "Australia/Adelaide")]],
  ["acdt", [named("Australian Central time", "Australia/Adelaide")]],
  ["aedt", [sydney]],
  ["nzst", [named("New Zealand time", "Pacific/Auckland")]],
  ["nzdt", [named("New Zealand time", "Pacific/Auckland")]],
  ["aest", [sydney, named("Queensland time", "Australia/Brisbane")]],
  ["adt", [atlantic, arabia]],
  ["amt", [named("Amazon time", "America/Manaus"), named("Armenia time", "Asia/Yerevan")]],
  ["ast", [atlantic, arabia]],
  ["bst", [named("British Summer Time", "Europe/London"), named("Bangladesh time", "Asia/Dhaka")]],
  ["cat", [named("Central Africa time", "Africa/Harare")]],
  ["cdt", [central, cuba]],
  ["cst", [central, named("China time", "Asia/Shanghai"), cuba]],
  [
    "ect",
    [
      named("Ecuador time", "America/Guayaquil"),
      named("Eastern Caribbean time", "America/Port_of_Spain"),
    ],
  ],
  [
    "gst",
    [named("Gulf time", "Asia/Dubai"), named("South Georgia time", "Atlantic/South_Georgia")],
  ],
  [
    "ist",
    [
      named("India time", "Asia/Kolkata"),
      named("Israel time", "Asia/Jerusalem"),
      named("Irish time", "Europe/Dublin"),
    ],
  ],
  [
    "mst",
    [
      mountain,
      named("Arizona time", "America/Phoenix"),
      named("Malaysia time", "Asia/Kuala_Lumpur"),
    ],
  ],
  ["pst", [pacific, named("Philippine time", "Asia/Manila")]],
  ["sst", [named("Samoa time", "Pacific/Pago_Pago"), named("Singapore time", "Asia/Singapore")]],
  [
    "wst",
    [named("Western Australia time", "Australia/Perth"), named("West Samoa time", "Pacific/Apia")],
  ],
]);

/**
 * The time zone that a word names: an abbreviation (`CET`), a name of the tz database
 * (`Europe/Paris`), or its city (`Paris`). Undefined for any other word.
 */
export function zoneCalled(word: string): ZoneMeant | undefined {
  const zones = abbreviations.get(fold(word));
  const [first, ...others] = zones ?? [];
  if (first && zones)
    return others.length > 0 ? { match: "several", zones } : { match: "one", ...first };
  const zone = zoneOfPlace(plainForm(word));
  return zone === undefined ? undefined : { match: "one", zone };
}

/**
 * Separates the zone from a time of day before it: `8pm CET`, `yesterday 20:00 Europe/Paris`. Throws
 * UserError where the zone has several meanings; `commandFor` is what to type for one of them.
 */
export function splitZone(
  text: string,
  commandFor: (words: string) => string,
): { words: string; zone: string | undefined } {
  const [, words = "", last = ""] = /^(.*\S)\s+(\S+)$/.exec(text.trim()) ?? [];
  const clock = words.split(/\s+/).at(-1) ?? "";
  const zone = parseClock(clock) || /^[ap]\.?m\.?$/i.test(clock) ? zoneCalled(last) : undefined;
  if (!zone) return { words: text, zone: undefined };
  if (zone.match === "several")
    throw severalZones(last, zone.zones, (it) => commandFor(`${words} ${it}`));
  return { words, zone: zone.zone };
}

/** Asks which of several zones an abbreviation means, with the command for each. */
export function severalZones(
  word: string,
  zones: readonly NamedZone[],
  commandFor: (zone: string) => string,
): UserError {
  const names = new Intl.ListFormat("en-US", { type: "disjunction" }).format(
    zones.map(({ name }) => name),
  );
  const ways = zones.map(({ name, zone }) => `\`${commandFor(zone)}\` for ${name}`);
  return new UserError(
    `${word} can be ${names}. Nothing was done.`,
    `Type ${new Intl.ListFormat("en-US", { type: "disjunction" }).format(ways)}.`,
  );
}

/** Intl takes other words of three letters for zones that few people would expect. */
function zoneOfPlace(word: string): string | undefined {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{3,}$/.test(word)) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: word }).resolvedOptions();
    // Intl turns Asia/Kolkata into its old name.
    return /^[A-Z]\w+(\/[A-Z][\w+-]+)+$/.test(word) ? word : timeZone;
  } catch {
    const ofCity = Intl.supportedValuesOf("timeZone").filter(
      (zone) => fold(zone.split("/").at(-1) ?? "") === fold(word),
    );
    return ofCity.length === 1 ? ofCity[0] : undefined;
  }
}
