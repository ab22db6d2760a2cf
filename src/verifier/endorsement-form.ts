import { unescape } from "node:querystring";
import { parseJson } from "../text/parse-json.ts";
import { parseCertificate } from "./certificate.ts";
import { bytesInText, isGzip, notText, textIn, unpacked } from "./saved-bytes.ts";

/**
 * Decodes what vendors sign, in the forms in which people and tools save it: PEM, base64, hex,
 * percent-encoded as in a header, with a byte order mark, or in UTF-16. Decoding doesn't make
 * anything trusted; the result is checked up to the roots.
 */

type Label = "CERTIFICATE" | "X509 CRL";

/** The DER inside. When the bytes contain none in a known form, they are returned unchanged. */
export function decodeDer(given: Buffer, label: Label): Buffer {
  const bytes = unpacked(given);
  const text = textIn(bytes);
  if (text === undefined) return bytes;
  const plain = withoutPercents(text);
  const [only, ...more] = blocksIn(plain, label);
  if (only) return more.length === 0 ? only : bytes;
  // A block with another label is named as what it is.
  if (plain.includes("-----BEGIN ") && !/^\s*[{["]/.test(plain)) return bytes;
  const der = bytesInText(plain);
  return der?.[0] === sequence ? der : bytes;
}

/**
 * The VCEK or VLEK inside, as `decodeDer` reads it, or as the one certificate of a chain that can
 * sign reports.
 */
export function decodeVek(given: Buffer): Buffer {
  const text = textIn(unpacked(given));
  const blocks = text === undefined ? [] : blocksIn(withoutPercents(text), "CERTIFICATE");
  return blocks.find(isVek) ?? decodeDer(given, "CERTIFICATE");
}

const isVek = (der: Buffer) =>
  ["SEV-VCEK", "SEV-VLEK"].includes(parseCertificate(der)?.commonName ?? "");

/**
 * The chain in the form that `readPem` accepts. A text without a certificate is returned unchanged.
 */
export function decodeChain(given: Buffer): string {
  const bytes = unpacked(given);
  const text = textIn(bytes) ?? bytes.toString("latin1");
  const plain = withoutPercents(text.trim().replace(/^[\w-]+:\s*(?=-----BEGIN)/i, ""));
  const blocks = rootLast(blocksIn(plain, "CERTIFICATE")).map((der) => {
    const lines = der.toString("base64").replaceAll(/.{64}(?=.)/g, "$&\n");
    return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
  });
  return blocks.length > 0 ? blocks.join("") : text;
}

/** Puts a chain into the order in which vendors send it, because some tools start with the root. */
function rootLast(chain: Buffer[]): Buffer[] {
  const first = chain[0] && parseCertificate(chain[0]);
  return first?.issuer.equals(first.subject) ? chain.toReversed() : chain;
}

/**
 * The text of a JSON answer. What is between its braces stays exactly as it was received, because
 * it is signed.
 */
export function decodeAnswer(given: Buffer): string {
  const bytes = unpacked(given);
  const text = textIn(bytes) ?? bytes.toString("utf8");
  const packed = fromBase64(text.replaceAll(/\s/g, ""))?.toString("utf8");
  return packed?.startsWith("{") ? packed : text;
}

/**
 * Names the form of bytes that aren't DER, as in "which is an HTML page". Undefined for exactly one
 * DER value.
 */
export function formOf(bytes: Buffer): string | undefined {
  if (isGzip(bytes)) return "a gzip archive";
  const text = textIn(bytes);
  return text === undefined ? formOfBinary(bytes) : formOfText(text);
}

/** Names the form of a text that isn't what it should be. */
export function formOfText(given: string): string {
  const text = given.trim();
  if (text === "") return "empty";
  if (notText.test(text)) return "no text";
  if (/^<!doctype html|^<(html|head|body)\b/i.test(text)) return "an HTML page";
  if (text.startsWith("<")) return "XML or HTML";
  if (/^[{[]/.test(text)) return parseJson(text) === undefined ? "JSON that is cut short" : "JSON";
  const [, label] = /-----BEGIN(?:%20|[ +])([A-Z0-9 %+]{1,40})-----/.exec(text) ?? [];
  if (label === undefined) return "a text";
  return text.includes(`-----END`)
    ? `PEM of ${label.replaceAll(/%20|\+/g, " ")}`
    : "PEM that is cut short";
}

const sequence = 0x30;

function formOfBinary(bytes: Buffer): string | undefined {
  if (bytes[0] !== sequence) return "no DER";
  const first = bytes[1] ?? 0;
  const more = first < 0x80 ? 0 : first & 0x7f;
  if (more > 4 || first === 0x80) return "no DER";
  if (bytes.length < 2 + more) return "cut short";
  const end = 2 + more + (more === 0 ? first : bytes.readUIntBE(2, more));
  if (bytes.length < end) return "cut short";
  return bytes.length > end ? "longer than it says" : undefined;
}

/** Decodes the value of a header. When spaces are written as `+`, each `+` of base64 is `%2B`. */
function withoutPercents(text: string): string {
  if (!/-----BEGIN(%20|\+)/i.test(text)) return text;
  return unescape(/-----BEGIN\+/i.test(text) ? text.replaceAll("+", " ") : text);
}

function blocksIn(text: string, label: Label): Buffer[] {
  const block = new RegExp(
    `-----BEGIN ${label}-----([A-Za-z0-9+/=\\s]+)-----END ${label}-----`,
    "g",
  );
  return [...text.matchAll(block)].flatMap(
    ([, inner = ""]) => fromBase64(inner.replaceAll(/\s/g, "")) ?? [],
  );
}

/** Decodes canonical base64 only; `Buffer.from` would skip unknown characters. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return text !== "" && bytes.toString("base64") === text ? bytes : undefined;
}
