import { X509Certificate } from "node:crypto";

/**
 * Signatures and TCB levels once more, by code that shares none with the verifier: WebCrypto and Node's X509Certificate for
 * what is signed, offsets written down again from the vendors' documents, levels by another way of comparing. Node's types
 * for X.509 are too lenient to judge by, which is why the verifier doesn't use them; to agree on genuine evidence they do.
 */
type Bytes = Uint8Array<ArrayBuffer>;

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const copy = (bytes: Uint8Array): Bytes => Uint8Array.from(bytes);

const curves = {
  "P-256": { hash: "SHA-256" },
  "P-384": { hash: "SHA-384" },
} as const;

async function holds(
  curve: keyof typeof curves,
  key: { spki: Uint8Array } | { point: Uint8Array },
  signed: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const algorithm = { name: "ECDSA", namedCurve: curve };
  const [format, bytes] =
    "spki" in key ? (["spki", key.spki] as const) : (["raw", [4, ...key.point]] as const);
  const imported = await crypto.subtle
    .importKey(format, Uint8Array.from(bytes), algorithm, false, ["verify"])
    // A point that is on no curve
    .catch(() => undefined);
  if (!imported) return false;
  const how = { name: "ECDSA", hash: curves[curve].hash };
  return crypto.subtle.verify(how, imported, copy(signature), copy(signed));
}

const spkiOf = (certificate: X509Certificate) =>
  certificate.publicKey.export({ type: "spki", format: "der" });

/** From the leaf up to the root. */
function isChain(certificates: readonly X509Certificate[]): boolean {
  return certificates.every((one, at) => one.verify((certificates[at + 1] ?? one).publicKey));
}

export interface Second {
  chain: boolean;
  signatures: boolean;
  /** TDX only. */
  status?: string | undefined;
}

/** Little-endian numbers of 72 bytes, of which 48 count, to what WebCrypto takes. */
function pointsOf(report: Uint8Array): Uint8Array {
  const number = (at: number) => report.slice(at, at + 48).toReversed();
  return Uint8Array.from([...number(0x2a0), ...number(0x2e8)]);
}

export async function secondLookAtReport(
  report: Uint8Array,
  ders: readonly Uint8Array[],
): Promise<Second> {
  const certificates = ders.map((der) => new X509Certificate(der));
  const [leaf] = certificates;
  if (!leaf) return { chain: false, signatures: false };
  return {
    chain: isChain(certificates),
    signatures: await holds(
      "P-384",
      { spki: spkiOf(leaf) },
      report.subarray(0, 672),
      pointsOf(report),
    ),
  };
}

interface Levels {
  tcbLevels: {
    tcb: {
      isvsvn?: number;
      pcesvn?: number;
      sgxtcbcomponents?: { svn: number }[];
      tdxtcbcomponents?: { svn: number }[];
    };
    tcbStatus: string;
  }[];
}

export interface SecondCollateral {
  tcbInfo: string;
  tcbInfoSignature: string;
  qeIdentity: string;
  qeIdentitySignature: string;
  chain: string;
}

const pems = (text: string) =>
  (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (pem) => new X509Certificate(pem),
  );

export async function secondLookAtQuote(
  quote: Uint8Array,
  collateral: SecondCollateral,
): Promise<Second> {
  const numbers = view(quote);
  const isFifth = numbers.getUint16(0, true) === 5;
  const body = isFifth ? 54 : 48;
  const end = body + (isFifth ? numbers.getUint32(50, true) : 584);
  const at = end + 4;
  const enclave = quote.subarray(at + 134, at + 134 + 384);
  const auth = at + 134 + 384 + 64;
  const authData = quote.subarray(auth + 2, auth + 2 + numbers.getUint16(auth, true));
  const point = quote.subarray(at + 64, at + 128);
  const certificates = pems(Buffer.from(quote).toString("latin1", auth));
  const [pck] = certificates;
  const [signer] = pems(collateral.chain);
  if (!pck || !signer) return { chain: false, signatures: false };
  const vouched = new Uint8Array(
    await crypto.subtle.digest("SHA-256", Uint8Array.from([...point, ...authData])),
  );
  const text = (json: string) => new TextEncoder().encode(json);
  const all = await Promise.all([
    holds("P-256", { point }, quote.subarray(0, end), quote.subarray(at, at + 64)),
    holds("P-256", { spki: spkiOf(pck) }, enclave, quote.subarray(at + 518, at + 582)),
    holds(
      "P-256",
      { spki: spkiOf(signer) },
      text(collateral.tcbInfo),
      Buffer.from(collateral.tcbInfoSignature, "hex"),
    ),
    holds(
      "P-256",
      { spki: spkiOf(signer) },
      text(collateral.qeIdentity),
      Buffer.from(collateral.qeIdentitySignature, "hex"),
    ),
  ]);
  return {
    chain: isChain(certificates) && isChain(pems(collateral.chain)),
    signatures: all.every(Boolean) && Buffer.from(enclave.subarray(320, 352)).equals(vouched),
    status: statusOf(
      quote.subarray(body, body + 16),
      svnsIn(pck),
      view(enclave).getUint16(258, true),
      collateral,
    ),
  };
}

/** The SVNs of a PCK, found by their object identifiers (…13.1.2.n) in the bytes of the certificate. */
function svnsIn(pck: X509Certificate): number[] {
  const hex = pck.raw.toString("hex");
  return Array.from({ length: 17 }, (_, n) => {
    const oid = `060b2a864886f84d010d0102${(n + 1).toString(16).padStart(2, "0")}02`;
    const found = hex.indexOf(oid);
    const length = Number.parseInt(hex.slice(found + oid.length, found + oid.length + 2), 16);
    const from = found + oid.length + 2;
    return found < 0 ? -1 : Number.parseInt(hex.slice(from, from + 2 * length), 16);
  });
}

/** The worst of three levels, by a list of words from good to bad; undefined when one of the three isn't met. */
function statusOf(
  tee: Uint8Array,
  svns: readonly number[],
  enclaveSvn: number,
  { tcbInfo, qeIdentity }: SecondCollateral,
): string | undefined {
  const info = JSON.parse(tcbInfo) as Levels & {
    tdxModuleIdentities?: (Levels & { id: string })[];
  };
  const [moduleSvn = 0, version = 0] = tee;
  const name = `TDX_${Buffer.from([version]).toString("hex")}`.toUpperCase();
  const module = info.tdxModuleIdentities?.find(({ id }) => id.toUpperCase() === name);
  const bySvn = (levels: Levels | undefined, svn: number) =>
    levels?.tcbLevels.find(({ tcb }) => (tcb.isvsvn ?? Infinity) <= svn)?.tcbStatus;
  const have = [...svns, ...(version === 0 ? tee : tee.subarray(2))];
  const platform = info.tcbLevels.find(({ tcb }) => {
    const tdx = (tcb.tdxtcbcomponents ?? []).map(({ svn }) => svn);
    const sgx = (tcb.sgxtcbcomponents ?? []).map(({ svn }) => svn);
    const needed = [...sgx, tcb.pcesvn ?? Infinity, ...(version === 0 ? tdx : tdx.slice(2))];
    return needed.length === have.length && !needed.some((svn, at) => svn > (have[at] ?? -1));
  })?.tcbStatus;
  const three = [
    platform,
    version === 0 ? "UpToDate" : bySvn(module, moduleSvn),
    bySvn(JSON.parse(qeIdentity) as Levels, enclaveSvn),
  ];
  if (three.includes(undefined)) return undefined;
  return ["Revoked", "OutOfDate"].find((word) => three.includes(word)) ?? platform;
}
