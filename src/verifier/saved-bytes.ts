import { gunzipSync } from "node:zlib";
import { hexDigits } from "../text/hex-digits.ts";
import { parseJson } from "../text/parse-json.ts";

/**
 * Reads bytes in the forms in which people and tools save them: as they are, packed with gzip, in
 * hex, in base64, in PEM, or in a JSON value that holds one of these. It is for evidence and for
 * what vendors sign. Reading doesn't make anything trusted.
 */

/** The bytes that a file stands for. Undefined for a text in no known form. */
export function bytesInFile(given: Buffer): Buffer | undefined {
  const bytes = unpacked(given);
  const text = bytes.length === 0 ? undefined : textIn(bytes);
  return text === undefined ? bytes : bytesInText(text);
}

/** The bytes that a text stands for. Undefined for a text in no known form. */
export function bytesInText(given: string, depth = 0): Buffer | undefined {
  const text = given.trim();
  const isJson = /^[{["]/.test(text) && text.length <= mostBytes;
  const json = isJson ? parseJson(text) : undefined;
  if (json !== undefined) return bytesInJson(json, depth);
  const [, block = text] = pemBlock.exec(text) ?? [];
  const [, listed = block] = listInCode.exec(block) ?? [];
  const digits = dumpedDigits(block) ?? hexDigits(listed);
  return digits === undefined ? fromBase64(block) : Buffer.from(digits, "hex");
}

/** A line of a dump: the offset, the bytes, and what they are as text. */
const dumpLine = /^([0-9a-f]{6,16})(:|\s|$)\s*(.*)$/i;

/**
 * The digits of a dump with offsets, as `xxd`, `hexdump -C`, and `od -A x -t x1` write it. Each
 * offset is checked; in place of repeated lines there is one with `*`. Undefined for other texts.
 */
function dumpedDigits(text: string): string | undefined {
  let all = "";
  let last = "";
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "*") continue;
    const [, offset, sign, rest = ""] = dumpLine.exec(line.trim()) ?? [];
    if (offset === undefined) return undefined;
    const at = 2 * Number.parseInt(offset, 16);
    if (at > 2 * mostBytes) return undefined;
    while (last !== "" && all.length < at) all += last;
    if (all.length !== at) return undefined;
    // xxd leaves two spaces before the text, the others put it between signs.
    const bytes = sign === ":" ? rest.replace(/\s{2}.*$/, "") : rest.replace(/[|>].*$/, "");
    last = bytes.replaceAll(/\s/g, "");
    if (!/^([0-9a-f]{2}){0,64}$/i.test(last)) return undefined;
    all += last;
  }
  return all === "" ? undefined : all;
}

/** The bytes in a program's text, as `xxd -i` writes it. */
const listInCode = /[{[]\s*((?:0x[0-9a-f]{2}[\s,]*)+)[}\]]/i;

const pemBlock = /-----BEGIN [A-Z0-9 ]{1,40}-----([A-Za-z0-9+/=\s]+)-----END /;

/** Members that hold what is looked for, whatever stands beside them. */
const usualMembers = ["report", "attestation", "quote", "evidence", "vcekCert", "vlekCert"];
/** `{report: {report}}` and the like. */
const deepest = 4;

/** What stands under another name and is shorter is an ID or a measurement (bytes). */
const leastUnnamed = 256;
/** More members than that aren't looked through. */
const mostMembers = 100;

function bytesInJson(value: unknown, depth = 0): Buffer | undefined {
  if (depth > deepest) return undefined;
  if (typeof value === "string") return bytesInText(value, depth + 1);
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value) && value.length > 0 && value.every(isByte)) return Buffer.from(value);
  const usual = usualMembers.flatMap((name) =>
    Object.hasOwn(value, name) ? [(value as Record<string, unknown>)[name]] : [],
  );
  for (const member of usual) {
    const bytes = bytesInJson(member, depth + 1);
    if (bytes !== undefined) return bytes;
  }
  const members = Object.values(value).slice(0, mostMembers);
  const all = members.flatMap((member) => bytesInJson(member, depth + 1) ?? []);
  const [longest] = all.toSorted((a, b) => b.length - a.length);
  return longest && longest.length >= leastUnnamed ? longest : undefined;
}

const isByte = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;

/**
 * Base64 in either alphabet, with spaces and line ends, and with or without its padding. `Buffer`
 * alone would skip what it doesn't know.
 */
function fromBase64(text: string): Buffer | undefined {
  const bare = text.replaceAll(/\s/g, "").replace(/={0,2}$/, "");
  if (bare === "" || bare.length % 4 === 1) return undefined;
  if (!/^[A-Za-z0-9+/]*$|^[A-Za-z0-9_-]*$/.test(bare)) return undefined;
  return Buffer.from(bare, "base64");
}

/** Undefined for bytes that aren't text. */
export function textIn(bytes: Buffer): string | undefined {
  const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  const text = bytes.toString(isUtf16 ? "utf16le" : "utf8").replace(/^\uFEFF/, "");
  return notText.test(text) ? undefined : text;
}

// oxlint-disable-next-line no-control-regex -- they tell bytes from text
export const notText = /[\0-\x08\x0e-\x1f\uFFFD]/;

export const isGzip = (bytes: Buffer): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;
/** Far more than any list, statement, or report has. */
const mostBytes = 1024 * 1024;

/** Unpacks a file that was saved while still compressed for transfer. */
export function unpacked(bytes: Buffer): Buffer {
  if (!isGzip(bytes)) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: mostBytes });
  } catch {
    return bytes;
  }
}
