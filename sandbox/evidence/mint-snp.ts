import { generateKeyPair, generateKeyPairSync, sign } from "node:crypto";
import { promisify } from "node:util";
import { extension, integer, tlv } from "./der-writer.ts";
import {
  type CertificateFields,
  type Keys,
  type ListFields,
  mintCertificate,
  mintList,
  pssSigning,
} from "./mint-certificates.ts";
import type { AmdEndorsements, Product, TrustedRoots } from "./trust.ts";

/** The keys of an AMD of our own. RSA of 4,096 bits takes its time: make it once. */
export interface AmdKeys {
  ark: Keys;
  ask: Keys;
  vek: Keys;
}

export async function createAmdKeys(): Promise<AmdKeys> {
  const rsa = () => promisify(generateKeyPair)("rsa", { modulusLength: 4096 });
  const [ark, ask] = await Promise.all([rsa(), rsa()]);
  return { ark, ask, vek: generateKeyPairSync("ec", { namedCurve: "P-384" }) };
}

/** How a report differs from a good one. */
export interface SnpChanges {
  product?: Product;
  kind?: "VCEK" | "VLEK";
  ark?: Partial<CertificateFields>;
  ask?: Partial<CertificateFields>;
  vek?: Partial<CertificateFields>;
  crl?: Partial<ListFields>;
  /** The extensions of the certificate by the end of their OID; undefined leaves one out. */
  extensions?: Record<string, Buffer | undefined>;
  /** The report before it is signed. */
  report?: (report: Buffer) => void;
}

export interface MintedSnp {
  report: Buffer;
  endorsements: AmdEndorsements;
  roots: (others: TrustedRoots) => TrustedRoots;
}

const dayMs = 86_400_000;
const cpuids = { Milan: [0x19, 1, 1], Genoa: [0x19, 0x11, 1], Turin: [0x1a, 2, 1] };
const tcbs = {
  Milan: [4, 0, 0, 0, 0, 0, 24, 219],
  Genoa: [10, 0, 0, 0, 0, 0, 23, 84],
  Turin: [1, 1, 1, 4, 0, 0, 0, 81],
};

/** Signing with RSA is slow too: what is as usual is minted once for the same keys and time. */
const minted = new WeakMap<AmdKeys, Map<string, Buffer>>();

function kept(keys: AmdKeys, name: string, mint: () => Buffer): Buffer {
  const its = minted.get(keys) ?? new Map<string, Buffer>();
  minted.set(keys, its);
  const found = its.get(name) ?? mint();
  its.set(name, found);
  return found;
}

/** A report of version 5 and everything that vouches for it, good at `now` but for what is changed. */
export function mintSnp(keys: AmdKeys, now: number, changes: SnpChanges = {}): MintedSnp {
  const { product = "Genoa", kind = "VCEK" } = changes;
  const chip = Buffer.alloc(64, 0xc1);
  if (product === "Turin") chip.fill(0, 8);
  const dates = { from: now - 100 * dayMs, until: now + 1000 * dayMs };
  const [arkName, askName] = [
    `ARK-${product}`,
    kind === "VLEK" ? `SEV-VLEK-${product}` : `SEV-${product}`,
  ];
  const common = { ...dates, signing: pssSigning, signer: keys.ark, issuer: arkName };
  const unless = (changed: object | undefined, name: string, mint: () => Buffer) =>
    changed ? mint() : kept(keys, `${name} ${product} ${kind} ${now}`, mint);
  const mintArk = () =>
    mintCertificate({
      ...common,
      subject: arkName,
      keys: keys.ark,
      serial: 0x020000,
      ca: {},
      ...changes.ark,
    });
  const mintAsk = () =>
    mintCertificate({
      ...common,
      subject: askName,
      keys: keys.ask,
      serial: 0x020002,
      ca: { pathLength: 0, usage: 0x04 },
      ...changes.ask,
    });
  const ark = unless(changes.ark, "ark", mintArk);
  const ask = unless(changes.ask, "ask", mintAsk);
  const mintVek = () =>
    mintCertificate({
      ...common,
      subject: `SEV-${kind}`,
      issuer: askName,
      keys: keys.vek,
      signer: keys.ask,
      serial: 0,
      extensions: vekExtensions(product, kind, chip, changes.extensions),
      ...changes.vek,
    });
  const mintCrl = () =>
    mintList({
      issuer: arkName,
      signer: keys.ark,
      signing: pssSigning,
      from: now - 10 * dayMs,
      until: now + 30 * dayMs,
      serials: [0x020001],
      ...changes.crl,
    });
  const vek = unless(changes.vek ?? changes.extensions, "vek", mintVek);
  const crl = unless(changes.crl, "crl", mintCrl);
  return {
    report: signReport(reportOf(product, kind, chip, changes.report), keys.vek),
    endorsements: { vek, crl },
    roots: (others) => {
      const its = { ...others.amd[product], ark, [kind === "VLEK" ? "asvk" : "ask"]: ask };
      return { ...others, amd: { ...others.amd, [product]: its } };
    },
  };
}

function vekExtensions(
  product: Product,
  kind: "VCEK" | "VLEK",
  chip: Buffer,
  changed: SnpChanges["extensions"] = {},
): Buffer[] {
  const ia5 = (text: string) => tlv(0x16, Buffer.from(text));
  const [isTurin, tcb] = [product === "Turin", tcbs[product]];
  const parts = isTurin ? { 9: 0, 1: 1, 2: 2, 3: 3, 8: 7 } : { 1: 0, 2: 1, 3: 6, 8: 7 };
  const all: Record<string, Buffer | undefined> = {
    "1": integer(isTurin ? 1 : 0),
    "2": ia5(product === "Milan" ? "Milan-B0" : product),
    ...Object.fromEntries(
      Object.entries(parts).map(([end, at]) => [`3.${end}`, integer(tcb[at] ?? 0)]),
    ),
    "4": kind === "VCEK" ? chip.subarray(0, isTurin ? 8 : 64) : undefined,
    "5": kind === "VLEK" ? ia5("CN=sandbox") : undefined,
    ...changed,
  };
  return Object.entries(all).flatMap(([end, value]) =>
    value === undefined ? [] : [extension(`1.3.6.1.4.1.3704.1.${end}`, value)],
  );
}

function reportOf(
  product: Product,
  kind: "VCEK" | "VLEK",
  chip: Buffer,
  change: SnpChanges["report"] = () => undefined,
): Buffer {
  const report = Buffer.alloc(1184);
  report.writeUInt32LE(5, 0);
  report.writeBigUInt64LE(0x30000n, 0x08);
  report.writeUInt32LE(1, 0x34);
  report.writeUInt32LE(kind === "VLEK" ? 4 : 0, 0x48);
  report.fill(0xda, 0x50, 0x90);
  report.fill(0xab, 0x90, 0xc0);
  report.fill(0x1d, 0x140, 0x160);
  for (const at of [0x38, 0x180, 0x1e0, 0x1f0]) Buffer.from(tcbs[product]).copy(report, at);
  Buffer.from(cpuids[product]).copy(report, 0x188);
  if (kind === "VCEK") chip.copy(report, 0x1a0);
  change(report);
  return report;
}

/** r and s little-endian, in 72 bytes each. */
export function signReport(report: Buffer, { privateKey }: Keys): Buffer {
  const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
  const signature = sign("sha384", report.subarray(0, 0x2a0), key);
  report.set(signature.subarray(0, 48).toReversed(), 0x2a0);
  report.set(signature.subarray(48).toReversed(), 0x2e8);
  return report;
}
