import { type Problem, problem } from "../reasons.ts";

/**
 * The content of a TDX quote. Numbers are little-endian; the rest is hex.
 * https://download.01.org/intel-sgx/latest/dcap-latest/linux/docs/Intel_TDX_DCAP_Quoting_Library_API.pdf
 * (appendix 3)
 */
export type TdxFacts = ReturnType<typeof factsOf>;
export type QuotingEnclaveReport = ReturnType<typeof enclaveOf>;

export type TdxQuote = Exclude<ReturnType<typeof readQuote>, Problem>;

const headerBytes = 48;
const bodyBytes = { "TD 1.0": 584, "TD 1.5": 648 } as const;
const intelVendor = "939a7233f79c4ca9940a0db3957f0607";

/** Reads a quote of version 4 or 5. Bytes after its end are padding. */
export function readQuote(bytes: Buffer) {
  if (bytes.length < headerBytes + 6) return truncated(bytes, headerBytes + 6);
  const [version, keyType] = [bytes.readUInt16LE(0), bytes.readUInt16LE(2)];
  const vendor = bytes.toString("hex", 12, 28);
  if (version !== 4 && version !== 5) return problem("quote-version", String(version));
  if (keyType !== 2) return problem("quote-key-type", String(keyType));
  if (bytes.readUInt32LE(4) !== 0x81)
    return problem("quote-tee", `0x${bytes.readUInt32LE(4).toString(16)}`);
  if (vendor !== intelVendor) return problem("quote-vendor", vendor);
  const body = bodyOf(bytes, version);
  if ("reason" in body) return body;
  const { kind, from, end } = body;
  if (bytes.length < end + 4) return truncated(bytes, end + 4);
  const signedEnd = end + 4 + bytes.readUInt32LE(end);
  if (bytes.length < signedEnd) return truncated(bytes, signedEnd);
  const parts = readParts(bytes.subarray(end + 4, signedEnd));
  if ("reason" in parts) return parts;
  return {
    facts: factsOf(bytes.subarray(from, end), version, kind),
    // The header and the body.
    signed: bytes.subarray(0, end),
    ...parts,
  };
}

const truncated = (bytes: Buffer, needed: number) =>
  problem("quote-truncated", `${bytes.length} of ${needed} bytes`);
const misfit = (about: string) => problem("quote-layout", about);

function bodyOf(bytes: Buffer, version: number) {
  if (version === 4)
    return { kind: "TD 1.0", from: headerBytes, end: headerBytes + bodyBytes["TD 1.0"] } as const;
  const [type, size] = [bytes.readUInt16LE(headerBytes), bytes.readUInt32LE(headerBytes + 2)];
  const kind = type === 2 ? "TD 1.0" : type === 3 ? "TD 1.5" : undefined;
  if (kind === undefined || size !== bodyBytes[kind])
    return problem("quote-body", `type ${type}, ${size} bytes`);
  return { kind, from: headerBytes + 6, end: headerBytes + 6 + size } as const;
}

/**
 * Reads the signature, the attestation key, and what vouches for the key. The lengths inside must
 * add up to the whole.
 */
function readParts(data: Buffer) {
  const certification = data.subarray(134);
  if (data.length < 134 + 450) return misfit(`${data.length} bytes of signature`);
  if (data.readUInt16LE(128) !== 6) return misfit("no report of a quoting enclave");
  if (data.readUInt32LE(130) !== certification.length) return misfit("the certification's size");
  const authSize = certification.readUInt16LE(448);
  const chain = certification.subarray(450 + authSize);
  if (chain.length < 6 || chain.readUInt16LE(0) !== 5) return misfit("no certificates");
  if (chain.readUInt32LE(2) !== chain.length - 6) return misfit("the certificates' size");
  return {
    signature: data.subarray(0, 64),
    // x and y of the attestation key.
    point: data.subarray(64, 128),
    enclave: enclaveOf(certification.subarray(0, 384)),
    enclaveSignature: certification.subarray(384, 448),
    authData: certification.subarray(450, 450 + authSize),
    // The PCK certificate, its CA, and the root.
    pem: chain.toString("latin1", 6),
  };
}

function enclaveOf(report: Buffer) {
  return {
    // The 384 bytes that the PCK key signs.
    signed: report,
    miscSelect: report.subarray(16, 20),
    attributes: report.subarray(48, 64),
    mrSigner: report.toString("hex", 128, 160),
    productId: report.readUInt16LE(256),
    svn: report.readUInt16LE(258),
    reportData: report.subarray(320, 384),
  };
}

function factsOf(body: Buffer, version: number, kind: keyof typeof bodyBytes) {
  const hex = (from: number, length: number) => body.toString("hex", from, from + length);
  return {
    tee: "tdx" as const,
    version,
    body: kind,
    // The TCB version when the VM was started.
    teeTcbSvn: hex(0, 16),
    mrSeam: hex(16, 48),
    mrSignerSeam: hex(64, 48),
    seamAttributes: hex(112, 8),
    tdAttributes: hex(120, 8),
    xfam: hex(128, 8),
    mrTd: hex(136, 48),
    mrConfigId: hex(184, 48),
    mrOwner: hex(232, 48),
    mrOwnerConfig: hex(280, 48),
    rtmr: [hex(328, 48), hex(376, 48), hex(424, 48), hex(472, 48)] as const,
    reportData: hex(520, 64),
    // The TCB version now, after updates of the module while the VM ran.
    ...(kind === "TD 1.5" ? { teeTcbSvn2: hex(584, 16), mrServiceTd: hex(600, 48) } : {}),
  };
}
