import {
  bitsOfQuote,
  everyBitOfReport,
  flipBits,
  type Flips,
  quotesFlipped,
  reportsFlipped,
} from "../verifier/flips.ts";
import { createRandom } from "../../sandbox/random.ts";

/** Every bit of a report of each product (or so many of them), and so many bits of quotes wherever they fall. */
export function flipEvidence({
  ofReports,
  ofQuotes,
  seed,
}: {
  ofReports: "every bit" | number;
  ofQuotes: number;
  seed: number;
}): Flips {
  const random = createRandom(seed);
  const some = (count: number, of: number) =>
    Array.from({ length: count }, () => Math.floor(random() * of));
  const reports = reportsFlipped.map((id) =>
    flipBits(id, ofReports === "every bit" ? everyBitOfReport : some(ofReports, 1184 * 8)),
  );
  const quotes = quotesFlipped.map((id) =>
    flipBits(id, some(Math.ceil(ofQuotes / quotesFlipped.length), bitsOfQuote(id))),
  );
  const all = [...reports, ...quotes];
  return {
    tried: all.reduce((sum, { tried }) => sum + tried, 0),
    verified: all.flatMap(({ verified }) => verified),
  };
}
