import { vendorRoots } from "../../src/verifier/roots.ts";
import { verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import { endorsementsOf, evidenceOf, vectorOf } from "./vectors.ts";

export interface Flips {
  tried: number;
  /** Taken for genuine although a bit was turned over. */
  verified: readonly string[];
}

/** Turns over the bits at these places, one at a time. */
export function flipBits(id: string, places: Iterable<number>): Flips {
  const vector = vectorOf(id);
  const [genuine, endorsements] = [evidenceOf(vector), endorsementsOf(vector)];
  const options = { now: Date.parse(vector.at), roots: vendorRoots };
  const flips = { tried: 0, verified: [] as string[] };
  const bytes = Buffer.from(genuine);
  for (const place of places) {
    const [at, bit] = [Math.floor(place / 8), place % 8];
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
    flips.tried += 1;
    if (verifyEvidence(bytes, endorsements, options).is === "authentic")
      flips.verified.push(`${id} byte ${at} bit ${bit}`);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
  }
  return flips;
}

/** Of a report, up to its last byte. */
export const everyBitOfReport = Array.from({ length: 1184 * 8 }, (_, place) => place);

/** Where a quote ends: what is behind it is padding. */
export function bitsOfQuote(id: string): number {
  const vector = vectorOf(id);
  const trailing = Number(vector.parsed?.["trailingBytes"] ?? 0);
  return (evidenceOf(vector).length - trailing) * 8;
}

export const reportsFlipped = ["snp-milan-v2", "snp-genoa-v5", "snp-turin-v5"] as const;
export const quotesFlipped = ["tdx-v4-uptodate", "tdx-v5-uptodate"] as const;
