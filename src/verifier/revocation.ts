import type { Certificate, Scheme } from "./certificate.ts";
import type { Examination } from "./examination.ts";
import { formOf } from "./endorsement-form.ts";
import {
  bitsOf,
  type Der,
  integerOf,
  isTrue,
  numberOf,
  oidOf,
  partsOf,
  readValue,
  tagged,
  tags,
  timeOf,
} from "./der.ts";

/** Enough for 50,000 certificates. Intel's list of 2026 has 57. */
const mostBytes = 1024 * 1024;

/**
 * Parses a list of revoked certificates (RFC 5280, section 5) and checks its issuer's signature.
 * Returns a reason when it isn't a list of that issuer. The caller must judge its dates. `number`
 * grows with each list, if the list has one.
 */
export function readRevocationList(der: Buffer, issuer: Certificate, scheme: Scheme) {
  if (der.length > mostBytes) return "crl-malformed";
  const [tbs, algorithm, signature, ...more] = partsOf(readValue(der, tags.sequence)) ?? [];
  const bits = bitsOf(signature);
  const fields = [...(partsOf(tbs) ?? [])];
  if (!tbs || !algorithm || !bits || more.length > 0) return "crl-malformed";
  // Version 2 is encoded as 1; version 1 has no such field.
  if (fields[0]?.tag === tags.integer && numberOf(fields.shift()) !== 1) return "crl-malformed";
  const [inner, name, from, until, ...rest] = fields;
  if (!inner?.whole.equals(algorithm.whole) || !name) return "crl-malformed";
  const [thisUpdate, nextUpdate] = [timeOf(from), timeOf(until)];
  if (thisUpdate === undefined || nextUpdate === undefined) return "crl-malformed";
  if (!name.whole.equals(issuer.subject) || !issuer.usage?.maySignLists) return "crl-issuer";
  if (!scheme.isAlgorithm(algorithm.whole) || !scheme.isSigned(tbs.whole, issuer.publicKey, bits))
    return "crl-signature";
  // Entries are read only now, after the signature was checked, because there may be many.
  const entries = rest[0]?.tag === tags.sequence ? readEntries(rest.shift()) : new Set<string>();
  const number = readListExtensions(rest.shift());
  if (!entries || number === false || rest.length > 0) return "crl-malformed";
  return { thisUpdate, nextUpdate, revoked: entries, number };
}

/**
 * The serial numbers (hex) on a list that its issuer has signed. Empty when there is no such list;
 * the problem is then recorded. `of` names the series in which this list must be the newest; it is
 * undefined when the issuer isn't trusted.
 */
export function examineList(
  name: string,
  der: Buffer | undefined,
  { issuer, scheme, of }: { issuer: Certificate; scheme: Scheme; of: string | undefined },
  exam: Examination,
): ReadonlySet<string> {
  const description = aboutList(name, der);
  const none = new Set<string>();
  if (!der) return exam.add("crl-missing", description) ?? none;
  const list = readRevocationList(der, issuer, scheme);
  if (typeof list === "string") return exam.add(list, description) ?? none;
  const { number, thisUpdate: from, nextUpdate: until, revoked } = list;
  exam.lasts("crl", description, { from, until });
  if (of !== undefined) exam.isNewest("crl", description, of, { number, from });
  return revoked;
}

/** The name of a list, with what the file contains instead when it isn't DER. */
export function aboutList(name: string, der: Buffer | undefined): string {
  const form = der && formOf(der);
  return form === undefined ? name : `${name}, which is ${form},`;
}

function readEntries(list: Der | undefined): Set<string> | undefined {
  const revoked = new Set<string>();
  const entries = partsOf(list, tags.sequence, Infinity);
  if (entries === undefined) return undefined;
  for (const entry of entries) {
    const parts = partsOf(entry) ?? [];
    const serial = integerOf(parts[0]);
    // When a certificate was revoked doesn't matter.
    if (!serial || parts.length < 2 || parts.length > 3) return undefined;
    if (parts.length === 3 && !areHarmless(partsOf(parts[2]))) return undefined;
    revoked.add(serial.toString("hex"));
  }
  return revoked;
}

/**
 * Whether no extension is critical. A critical one may say that the list covers only some
 * certificates, or only changes.
 */
function areHarmless(extensions: readonly Der[] | undefined): boolean {
  return extensions?.every((each) => !isTrue(partsOf(each)?.[1])) ?? false;
}

/**
 * The list's number, if it has one. False when the extensions can't be read or one of them may not
 * be ignored.
 */
function readListExtensions(field: Der | undefined): bigint | undefined | false {
  if (field === undefined) return undefined;
  const [list, ...more] = partsOf(field, tagged(0)) ?? [];
  const all = partsOf(list);
  if (!all || more.length > 0 || !areHarmless(all)) return false;
  const numberParts = all
    .map((each) => partsOf(each) ?? [])
    .find(([oid]) => oidOf(oid) === "2.5.29.20");
  if (numberParts === undefined) return undefined;
  const number = integerOf(readValue(numberParts.at(-1)?.content, tags.integer));
  if (number === undefined || number.length > 21 || (number[0] ?? 0) >= 0x80) return false;
  return BigInt(`0x${number.toString("hex")}`);
}
