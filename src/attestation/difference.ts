import { normalise, short } from "./measurement.ts";

/** How two measurements differ, in words: `1 of 48 bytes differs: byte 17 is 4f, expected 4e`. Undefined when they are equal. */
export function difference(found: string, expected: string): string | undefined {
  const [is, should] = [normalise(found), normalise(expected)];
  if (is === should) return undefined;
  if (!isHex(is) || !isHex(should)) return `${short(is)} instead of ${short(should)}`;
  const [a, b] = [Buffer.from(is, "hex"), Buffer.from(should, "hex")];
  if (a.length !== b.length)
    return `${short(is)} (${a.length} bytes) instead of ${short(should)} (${b.length} bytes)`;
  const places = [...a.keys()].filter((at) => a[at] !== b[at]);
  const [first = 0] = places;
  const counted = `${places.length} of ${a.length} bytes ${places.length === 1 ? "differs" : "differ"}`;
  // A hash that changed differs nearly everywhere: only few differences are worth their places
  if (places.length > 3)
    return `${short(is)} instead of ${short(should)}: ${counted}, from byte ${first + 1}`;
  const each = places.map((at) => `byte ${at + 1} is ${hex(a[at])}, expected ${hex(b[at])}`);
  return `${counted}: ${each.join("; ")}`;
}

/** Of several expected ones, the one it differs from the least. */
export function nearestOf(found: string, expected: readonly string[]): string | undefined {
  const distance = (one: string) => {
    const [a, b] = [normalise(found), normalise(one)];
    const same = Array.from(a).filter((letter, at) => b[at] === letter).length;
    return Math.max(a.length, b.length) - same;
  };
  return expected.toSorted((a, b) => distance(a) - distance(b))[0];
}

const isHex = (text: string) => /^([0-9a-f]{2})+$/.test(text);
const hex = (byte: number | undefined) => (byte ?? 0).toString(16).padStart(2, "0");
