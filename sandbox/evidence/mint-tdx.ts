import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { extension, integer, octets, oid, pem, sequence } from "./der-writer.ts";
import {
  type CertificateFields,
  ecdsaSigning,
  type Keys,
  type ListFields,
  mintCertificate,
  mintList,
} from "./mint-certificates.ts";
import type { IntelEndorsements, TrustedRoots } from "./trust.ts";

/** The keys of an Intel of our own. */
export type IntelKeys = Record<"root" | "ca" | "pck" | "signer" | "attestation", Keys>;

export function createIntelKeys(): IntelKeys {
  const make = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { root: make(), ca: make(), pck: make(), signer: make(), attestation: make() };
}

interface TcbLevel {
  tcb: Record<string, unknown>;
  tcbDate: string;
  tcbStatus: string;
  advisoryIDs?: string[];
}

export interface TcbInfoJson {
  [field: string]: unknown;
  id: string;
  version: number;
  issueDate: string;
  nextUpdate: string;
  fmspc: string;
  pceId: string;
  tdxModule: { mrsigner: string; attributes: string };
  tdxModuleIdentities: {
    id: string;
    mrsigner: string;
    attributes: string;
    tcbLevels: TcbLevel[];
  }[];
  tcbLevels: TcbLevel[];
}

export interface QeIdentityJson {
  [field: string]: unknown;
  id: string;
  version: number;
  issueDate: string;
  nextUpdate: string;
  mrsigner: string;
  isvprodid: number;
  tcbLevels: TcbLevel[];
}

/** How a quote differs from a good one. */
export interface TdxChanges {
  isTd15?: boolean;
  root?: Partial<CertificateFields>;
  /** A root that was minted before, with the same keys. */
  rootCertificate?: Buffer;
  ca?: Partial<CertificateFields>;
  pck?: Partial<CertificateFields>;
  signer?: Partial<CertificateFields>;
  rootCrl?: Partial<ListFields>;
  pckCrl?: Partial<ListFields>;
  /** SVNs of the PCK: 16, then PCESVN. */
  svns?: readonly number[];
  fmspc?: string;
  pceId?: string;
  header?: (header: Buffer) => void;
  body?: (body: Buffer) => void;
  /** The quoting enclave's report, before the PCK key signs it. */
  enclave?: (report: Buffer) => void;
  authData?: Buffer;
  tcbInfo?: (info: TcbInfoJson) => void;
  qeIdentity?: (identity: QeIdentityJson) => void;
  /** The chain of certificates that goes into the quote. */
  chain?: (chain: Buffer[]) => Buffer[];
}

export interface MintedTdx {
  quote: Buffer;
  endorsements: Required<IntelEndorsements>;
  roots: (others: TrustedRoots) => TrustedRoots;
  certificates: Record<"root" | "ca" | "pck" | "signer", Buffer>;
}

const dayMs = 86_400_000;
const enclaveSigner = "dc".repeat(32);

/** A quote of version 4 (5 for TD 1.5) and everything that vouches for it, good at `now` but for what is changed. */
export function mintTdx(keys: IntelKeys, now: number, changes: TdxChanges = {}): MintedTdx {
  const certificates = mintChain(keys, now, changes);
  const { root, ca, pck, signer } = certificates;
  const dates = { from: now - 5 * dayMs, until: now + 25 * dayMs, signing: ecdsaSigning };
  const rootCrl = mintList({
    ...dates,
    issuer: "Intel SGX Root CA",
    signer: keys.root,
    ...changes.rootCrl,
  });
  const pckCrl = mintList({
    ...dates,
    issuer: "Intel SGX PCK Platform CA",
    signer: keys.ca,
    serials: [0x777],
    ...changes.pckCrl,
  });
  const answer = (field: string, json: unknown) => {
    const text = JSON.stringify(json);
    const key = { key: keys.signer.privateKey, dsaEncoding: "ieee-p1363" } as const;
    const signature = sign("sha256", Buffer.from(text), key).toString("hex");
    return { body: `{"${field}":${text},"signature":"${signature}"}`, chain: pem(signer, root) };
  };
  const chain = changes.chain?.([pck, ca, root]) ?? [pck, ca, root];
  return {
    quote: quoteOf(keys, pem(...chain), changes),
    endorsements: {
      tcbInfo: answer("tcbInfo", tcbInfoOf(now, changes)),
      qeIdentity: answer("enclaveIdentity", qeIdentityOf(now, changes)),
      pckCrl,
      rootCrl,
    },
    roots: (others) => ({ ...others, intel: root }),
    certificates,
  };
}

function mintChain(keys: IntelKeys, now: number, changes: TdxChanges): MintedTdx["certificates"] {
  const common = {
    from: now - 100 * dayMs,
    until: now + 1000 * dayMs,
    signing: ecdsaSigning,
    signer: keys.root,
    issuer: "Intel SGX Root CA",
  };
  return {
    root:
      changes.rootCertificate ??
      mintCertificate({
        ...common,
        subject: "Intel SGX Root CA",
        keys: keys.root,
        serial: 1,
        ca: { pathLength: 1 },
        ...changes.root,
      }),
    ca: mintCertificate({
      ...common,
      subject: "Intel SGX PCK Platform CA",
      keys: keys.ca,
      serial: 2,
      ca: { pathLength: 0 },
      ...changes.ca,
    }),
    pck: mintCertificate({
      ...common,
      subject: "Intel SGX PCK Certificate",
      issuer: "Intel SGX PCK Platform CA",
      keys: keys.pck,
      signer: keys.ca,
      serial: 0x555,
      ca: { isCa: false, usage: 0xc0 },
      extensions: [sgxExtension(changes)],
      ...changes.pck,
    }),
    signer: mintCertificate({
      ...common,
      subject: "Intel SGX TCB Signing",
      keys: keys.signer,
      serial: 4,
      ca: { isCa: false, usage: 0xc0 },
      ...changes.signer,
    }),
  };
}

const usualSvns = [3, 3, 2, 2, 4, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 13];

function sgxExtension({
  svns = usualSvns,
  fmspc = "00a06f000000",
  pceId = "0000",
}: TdxChanges): Buffer {
  const base = "1.2.840.113741.1.13.1";
  const pair = (end: string, value: Buffer) => sequence(oid(`${base}.${end}`), value);
  const levels = svns.map((svn, n) => pair(`2.${n + 1}`, integer(svn)));
  return extension(
    base,
    sequence(
      pair("1", octets(Buffer.alloc(16, 7))),
      pair("2", sequence(...levels, pair("2.18", octets(Buffer.alloc(16))))),
      pair("3", octets(Buffer.from(pceId, "hex"))),
      pair("4", octets(Buffer.from(fmspc, "hex"))),
    ),
  );
}

const day = (at: number) => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** Category and type of the components, as Intel's TCB info has them. */
const sgxNames = [
  ["BIOS", "Early Microcode Update"],
  ["OS/VMM", "SGX Late Microcode Update"],
  ["OS/VMM", "TXT SINIT"],
  ["BIOS"],
  ["BIOS"],
  ["BIOS"],
  [],
  ["OS/VMM", "SEAMLDR ACM"],
];
const tdxNames = [
  ["OS/VMM", "TDX Module"],
  ["OS/VMM", "TDX Module"],
  ["OS/VMM", "TDX Late Microcode Update"],
];

function tcbInfoOf(now: number, { tcbInfo }: TdxChanges): TcbInfoJson {
  const components = (svns: readonly number[], named: readonly (readonly string[])[]) =>
    svns.slice(0, 16).map((svn, at) => {
      const [category, type] = named[at] ?? [];
      return { svn, ...(category ? { category } : {}), ...(type ? { type } : {}) };
    });
  const level = (lower: number, tcbStatus: string, tcbDate: string): TcbLevel => ({
    tcb: {
      sgxtcbcomponents: components(
        usualSvns.map((svn) => Math.max(0, svn - lower)),
        sgxNames,
      ),
      pcesvn: 13 - lower,
      tdxtcbcomponents: components(
        [5 - lower, 0, 3 - lower, ...Array<number>(13).fill(0)],
        tdxNames,
      ),
    },
    tcbDate,
    tcbStatus,
    ...(lower === 0 ? {} : { advisoryIDs: ["INTEL-SA-00001"] }),
  });
  const intel = { mrsigner: "0".repeat(96), attributes: "0".repeat(16) };
  const svn = (isvsvn: number, tcbStatus: string): TcbLevel => ({
    tcb: { isvsvn },
    tcbDate: "2024-11-13T00:00:00Z",
    tcbStatus,
    ...(tcbStatus === "UpToDate" ? {} : { advisoryIDs: ["INTEL-SA-00002"] }),
  });
  const info: TcbInfoJson = {
    id: "TDX",
    version: 3,
    issueDate: day(now - 4 * dayMs),
    nextUpdate: day(now + 26 * dayMs),
    fmspc: "00A06F000000",
    pceId: "0000",
    tcbType: 0,
    tcbEvaluationDataNumber: 18,
    tdxModule: intel,
    tdxModuleIdentities: [
      { id: "TDX_01", ...intel, tcbLevels: [svn(6, "UpToDate"), svn(4, "OutOfDate")] },
      { id: "TDX_03", ...intel, tcbLevels: [svn(3, "UpToDate")] },
    ],
    tcbLevels: [
      level(0, "UpToDate", "2024-11-13T00:00:00Z"),
      level(1, "OutOfDate", "2023-02-15T00:00:00Z"),
    ],
  };
  tcbInfo?.(info);
  return info;
}

function qeIdentityOf(now: number, { qeIdentity }: TdxChanges): QeIdentityJson {
  const identity: QeIdentityJson = {
    id: "TD_QE",
    version: 2,
    issueDate: day(now - 3 * dayMs),
    nextUpdate: day(now + 27 * dayMs),
    tcbEvaluationDataNumber: 18,
    miscselect: "00000000",
    miscselectMask: "FFFFFFFF",
    attributes: "11000000000000000000000000000000",
    attributesMask: "FBFFFFFFFFFFFFFF0000000000000000",
    mrsigner: enclaveSigner.toUpperCase(),
    isvprodid: 2,
    tcbLevels: [
      { tcb: { isvsvn: 4 }, tcbDate: "2024-11-13T00:00:00Z", tcbStatus: "UpToDate" },
      { tcb: { isvsvn: 2 }, tcbDate: "2023-02-15T00:00:00Z", tcbStatus: "OutOfDate" },
    ],
  };
  qeIdentity?.(identity);
  return identity;
}

const u16 = (value: number) => Buffer.from([value % 256, Math.floor(value / 256)]);
const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

function quoteOf(keys: IntelKeys, chain: string, changes: TdxChanges): Buffer {
  const { isTd15 = false, authData = Buffer.alloc(32, 0xa0) } = changes;
  const header = Buffer.alloc(48);
  header.writeUInt16LE(isTd15 ? 5 : 4, 0);
  header.writeUInt16LE(2, 2);
  header.writeUInt32LE(0x81, 4);
  header.write("939a7233f79c4ca9940a0db3957f0607", 12, "hex");
  changes.header?.(header);
  const signed = Buffer.concat([
    header,
    ...(isTd15 ? [u16(3), u32(648)] : []),
    bodyOf(isTd15, changes.body),
  ]);
  const raw = (bytes: Buffer, { privateKey }: Keys) =>
    sign("sha256", bytes, { key: privateKey, dsaEncoding: "ieee-p1363" });
  const spki = keys.attestation.publicKey.export({ type: "spki", format: "der" });
  const point = spki.subarray(-64);
  const enclave = enclaveOf(Buffer.concat([point, authData]), changes.enclave);
  const text = Buffer.from(chain, "latin1");
  const certification = Buffer.concat([
    enclave,
    raw(enclave, keys.pck),
    u16(authData.length),
    authData,
    u16(5),
    u32(text.length),
    text,
  ]);
  const data = Buffer.concat([
    raw(signed, keys.attestation),
    point,
    u16(6),
    u32(certification.length),
    certification,
  ]);
  return Buffer.concat([signed, u32(data.length), data]);
}

function bodyOf(isTd15: boolean, change: TdxChanges["body"] = () => undefined): Buffer {
  const body = Buffer.alloc(isTd15 ? 648 : 584);
  Buffer.from([6, 1, 3]).copy(body, 0);
  body[120 + 3] = 0x10;
  body.fill(0xab, 136, 184);
  for (const n of [0, 1, 2]) body.fill(0xb0 + n, 328 + n * 48, 376 + n * 48);
  body.fill(0xda, 520, 584);
  if (isTd15) Buffer.from([6, 1, 3]).copy(body, 584);
  change(body);
  return body;
}

function enclaveOf(vouched: Buffer, change: TdxChanges["enclave"] = () => undefined): Buffer {
  const enclave = Buffer.alloc(384);
  enclave[48] = 0x11;
  enclave.write(enclaveSigner, 128, "hex");
  enclave.writeUInt16LE(2, 256);
  enclave.writeUInt16LE(4, 258);
  createHash("sha256").update(vouched).digest().copy(enclave, 320);
  change(enclave);
  return enclave;
}
