import { parseCertificate, type Certificate } from "../certificate.ts";
import { numberOf, readValue, tags } from "../der.ts";
import { products, type Product, type TrustedRoots } from "../roots.ts";
import { tcbPartNames, type TcbParts } from "./report.ts";

/** The certificate of the key that signs reports: the chip's own (VCEK), or a cloud's (VLEK). */
export interface Vek {
  certificate: Certificate;
  kind: "VCEK" | "VLEK";
  /** From `Milan-B0`: `Milan`. */
  productName: string;
  tcb: TcbParts;
  /** Hex; VCEK only. */
  hwid?: string;
  /** Whom a VLEK is leased to. */
  csp?: string;
}

const base = "1.3.6.1.4.1.3704.1";
const partOids = { bootloader: 1, tee: 2, snp: 3, microcode: 8, fmc: 9 } as const;

/** What AMD's extensions say (57230), or which of them is missing. */
export function readVek(certificate: Certificate): Vek | { lacks: string } {
  const at = (oid: string) => certificate.extensions.get(`${base}.${oid}`);
  const name = at("2") && readValue(at("2") ?? Buffer.alloc(0), 0x16)?.content.toString("latin1");
  if (name === undefined) return { lacks: "product" };
  const [productName = ""] = name.split("-");
  const structVersion = numberOf(readValue(at("1") ?? Buffer.alloc(0), tags.integer));
  if (structVersion !== (productName === "Turin" ? 1 : 0)) return { lacks: "structure" };
  const tcb: TcbParts = {};
  for (const part of tcbPartNames) {
    if (part === "fmc" && productName !== "Turin") continue;
    const value = at(`3.${partOids[part]}`);
    const number = value && numberOf(readValue(value, tags.integer));
    if (number === undefined) return { lacks: `${part} version` };
    tcb[part] = number;
  }
  const kind = certificate.commonName === "SEV-VLEK" ? "VLEK" : "VCEK";
  // The bytes themselves, in no OCTET STRING of their own
  const hwid = at("4");
  const csp = readValue(at("5") ?? Buffer.alloc(0), 0x16)?.content.toString("latin1");
  if (kind === "VLEK") {
    if (csp === undefined) return { lacks: "cloud" };
    return { certificate, kind, productName, tcb, csp };
  }
  if (hwid?.length !== (productName === "Turin" ? 8 : 64)) return { lacks: "chip ID" };
  return { certificate, kind, productName, tcb, hwid: hwid.toString("hex") };
}

export interface VekIssuers {
  product: Product;
  kind: Vek["kind"];
  issuer: Certificate;
  ark: Certificate;
}

/** The pinned ASK or ASVK that has the name of the certificate's issuer, and the ARK above it. */
export function issuersOf(certificate: Certificate, roots: TrustedRoots): VekIssuers | undefined {
  for (const product of products) {
    const { ark, ask, asvk } = roots.amd[product];
    for (const [kind, der] of [
      ["VCEK", ask],
      ["VLEK", asvk],
    ] as const) {
      const issuer = parseCertificate(der);
      if (!issuer?.subject.equals(certificate.issuer)) continue;
      const root = parseCertificate(ark);
      return root && { product, kind, issuer, ark: root };
    }
  }
  return undefined;
}

const vekGuids = ["63da758de6644564adc5f4b93be8accd", "a8074bc2a25a483eaae639c045a0b8a1"];
const entryBytes = 24;
const mostEntries = 16;

/**
 * The VCEK or VLEK in the table that may follow a report (GHCB specification, 56421: GUID, offset, length; a GUID of zeros
 * ends it). A hint: whatever is found is checked like any other certificate.
 */
export function vekInTable(rest: Buffer): Buffer | undefined {
  for (let n = 0; n < mostEntries; n += 1) {
    const entry = rest.subarray(n * entryBytes, (n + 1) * entryBytes);
    if (entry.length < entryBytes) return undefined;
    const guid = entry.toString("hex", 0, 16);
    if (/^0+$/.test(guid)) return undefined;
    const [offset, length] = [entry.readUInt32LE(16), entry.readUInt32LE(20)];
    if (vekGuids.includes(guid) && length > 0 && offset + length <= rest.length)
      return rest.subarray(offset, offset + length);
  }
  return undefined;
}
