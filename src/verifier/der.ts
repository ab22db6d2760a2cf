/** One DER value: its tag, its content, and all its bytes including tag and length. */
export interface Der {
  tag: number;
  content: Buffer;
  whole: Buffer;
}

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  enumerated: 0x0a,
  sequence: 0x30,
  set: 0x31,
} as const;

/** The tag of a context-specific, constructed value: `[0]` to `[30]`. */
export const tagged = (number: number): number => 0xa0 | number;

/**
 * No sequence needs more values, except a list of revoked certificates, which is read only once its
 * signature holds.
 */
const mostValues = 64;

/**
 * The values in these bytes, one after the other. Undefined unless they are strict DER (X.690,
 * section 10): tags of one byte, definite lengths in their shortest form, nothing cut, and nothing
 * left over. Every reader below follows these rules, so that no certificate or list has two
 * encodings. Only one level and a limited number of values are read at a time, so unsigned bytes
 * cause no more work than a genuine value would.
 */
export function readValues(bytes: Buffer, most = mostValues): readonly Der[] | undefined {
  const values: Der[] = [];
  let at = 0;
  while (at < bytes.length) {
    const value = values.length < most ? valueAt(bytes, at) : undefined;
    if (value === undefined) return undefined;
    values.push(value);
    at += value.whole.length;
  }
  return values;
}

function valueAt(bytes: Buffer, at: number): Der | undefined {
  const [tag, first] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) return undefined;
  const more = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || more > 4 || at + 2 + more > bytes.length) return undefined;
  const length = more === 0 ? first : bytes.readUIntBE(at + 2, more);
  const isShortest = more === 0 || (length >= 0x80 && length >= 256 ** (more - 1));
  const begin = at + 2 + more;
  if (!isShortest || begin + length > bytes.length) return undefined;
  const end = begin + length;
  return { tag, content: bytes.subarray(begin, end), whole: bytes.subarray(at, end) };
}

/** The value that fills the bytes, if there is exactly one and it has this tag. */
export function readValue(bytes: Buffer | undefined, tag: number): Der | undefined {
  const values = bytes && readValues(bytes);
  return values?.length === 1 && values[0]?.tag === tag ? values[0] : undefined;
}

/** The values inside a sequence, or inside a value with another given tag. */
export function partsOf(
  value: Der | undefined,
  tag: number = tags.sequence,
  most?: number,
): readonly Der[] | undefined {
  return value?.tag === tag ? readValues(value.content, most) : undefined;
}

/** The bytes of an integer: two's complement in its shortest form. */
export function integerOf(value: Der | undefined): Buffer | undefined {
  if (value?.tag !== tags.integer && value?.tag !== tags.enumerated) return undefined;
  const [first, second = 0] = value.content;
  if (first === undefined) return undefined;
  const isPadded =
    value.content.length > 1 &&
    ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80));
  return isPadded ? undefined : value.content;
}

/** A non-negative integer of at most five bytes: less than 2^39. */
export function numberOf(value: Der | undefined): number | undefined {
  const bytes = integerOf(value);
  if (bytes === undefined || bytes.length > 5 || (bytes[0] ?? 0) >= 0x80) return undefined;
  return bytes.readUIntBE(0, bytes.length);
}

/**
 * Whether a value is `true`. DER omits a value that equals its default, so `false` is never written
 * where it is the default.
 */
export function isTrue(value: Der | undefined): boolean {
  return value?.tag === tags.boolean && value.content.length === 1 && value.content[0] === 0xff;
}

export function octetsOf(value: Der | undefined): Buffer | undefined {
  return value?.tag === tags.octets ? value.content : undefined;
}

/** The content of a bit string of whole bytes, as keys and signatures are. */
export function bitsOf(value: Der | undefined): Buffer | undefined {
  return value?.tag === tags.bits && value.content[0] === 0 ? value.content.subarray(1) : undefined;
}

/** The OID with dots: `1.2.840.113741.1.13.1`. */
export function oidOf(value: Der | undefined): string | undefined {
  if (value?.tag !== tags.oid || value.content.length === 0 || value.content.length > 32)
    return undefined;
  const arcs: number[] = [];
  let arc = 0;
  let isInside = false;
  for (const byte of value.content) {
    if (!isInside && byte === 0x80) return undefined;
    arc = arc * 128 + (byte & 0x7f);
    if (arc > 2 ** 40) return undefined;
    isInside = byte >= 0x80;
    if (!isInside) {
      arcs.push(arc);
      arc = 0;
    }
  }
  const [head = 0, ...rest] = arcs;
  const root = Math.min(2, Math.floor(head / 40));
  return isInside ? undefined : [root, head - root * 40, ...rest].join(".");
}

/**
 * A UTCTime or GeneralizedTime as certificates write it (RFC 5280, 4.1.2.5), in milliseconds since
 * the epoch.
 */
export function timeOf(value: Der | undefined): number | undefined {
  const text = value?.content.toString("latin1") ?? "";
  const short = value?.tag === 0x17 && /^\d{12}Z$/.test(text);
  if (!short && !(value?.tag === 0x18 && /^\d{14}Z$/.test(text))) return undefined;
  const digits = short ? `${/^[5-9]/.test(text) ? 19 : 20}${text}` : text;
  return exactTime(digits.replace(/(....)(..)(..)(..)(..)(..)/, "$1-$2-$3T$4:$5:$6"));
}

/** Parses exactly the form `2025-07-19T10:00:35Z`. A day that its month doesn't have is refused. */
export function exactTime(text: unknown): number | undefined {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text)) return undefined;
  const at = Date.parse(text);
  const isThere = !Number.isNaN(at) && new Date(at).toISOString() === text.replace("Z", ".000Z");
  return isThere ? at : undefined;
}
