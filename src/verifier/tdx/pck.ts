import type { Certificate } from "../certificate.ts";
import { numberOf, octetsOf, oidOf, partsOf, readValue, tags, type Der } from "../der.ts";

/** What Intel certifies of a platform beside its key (SGX extension of the PCK certificate). */
export interface PckFacts {
  /** Hex. */
  fmspc: string;
  pceId: string;
  svns: readonly number[];
  pceSvn: number;
}

const extension = "1.2.840.113741.1.13.1";

/** The facts, or which of them is missing. */
export function readPck({ extensions }: Certificate): PckFacts | { lacks: string } {
  const all = pairsOf(readValue(extensions.get(extension) ?? Buffer.alloc(0), tags.sequence));
  if (!all) return { lacks: "platform" };
  const tcb = pairsOf(all.get(`${extension}.2`));
  const svns = Array.from({ length: 16 }, (_, n) => numberOf(tcb?.get(`${extension}.2.${n + 1}`)));
  const pceSvn = numberOf(tcb?.get(`${extension}.2.17`));
  const known = svns.filter((svn) => svn !== undefined);
  if (known.length !== 16 || pceSvn === undefined) return { lacks: "security versions" };
  const fmspc = octetsOf(all.get(`${extension}.4`));
  const pceId = octetsOf(all.get(`${extension}.3`));
  if (fmspc?.length !== 6) return { lacks: "FMSPC" };
  if (pceId?.length !== 2) return { lacks: "PCEID" };
  return { fmspc: fmspc.toString("hex"), pceId: pceId.toString("hex"), svns: known, pceSvn };
}

/** A sequence of pairs of OID and value, by the OID; each OID once. */
function pairsOf(sequence: Der | undefined): ReadonlyMap<string, Der> | undefined {
  const pairs = new Map<string, Der>();
  const parts = partsOf(sequence);
  if (!parts) return undefined;
  for (const part of parts) {
    const [type, value, ...more] = partsOf(part) ?? [];
    const oid = oidOf(type);
    if (oid === undefined || !value || more.length > 0 || pairs.has(oid)) return undefined;
    pairs.set(oid, value);
  }
  return pairs;
}
