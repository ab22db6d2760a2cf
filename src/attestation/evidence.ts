import { fromBase64 } from "./measurement.ts";

/**
 * What the raw report says by itself, read without any network. Nothing in here checks a signature: a forged report
 * reads just as well. It tells whether the service's words fit to the report it shows.
 */
export type Evidence =
  | { is: "missing" }
  | { is: "damaged"; why: string }
  | { is: "unknown"; bytes: number }
  | {
      is: "read";
      format: "AMD SEV-SNP report" | "Intel TDX quote";
      vendor: "AMD" | "Intel";
      /** Hex. What may be called "the measurement" of it, by the name of its field. */
      registers: readonly { name: string; value: string }[];
      isDebug: boolean;
      /** 64 bytes that the machine put in, for a nonce or a key; all zero when it is bound to nothing. */
      isBound: boolean;
      bytes: number;
    };

/** A report shorter than this holds no signature and no measurement. */
const leastBytes = 128;
const mostBase64 = 1_000_000;

export function readEvidence(report: string | undefined): Evidence {
  if (report === undefined || report.trim() === "") return { is: "missing" };
  if (report.length > mostBase64) return { is: "damaged", why: "it is too long to be a report" };
  const bytes = fromBase64(report);
  if (!bytes) return { is: "damaged", why: "it is not base64" };
  if (bytes.length < leastBytes)
    return { is: "damaged", why: `it is ${bytes.length} bytes, too short for a report` };
  return readTdx(bytes) ?? readSnp(bytes) ?? { is: "unknown", bytes: bytes.length };
}

/** ATTESTATION_REPORT, https://docs.amd.com/v/u/en-US/56860 (table 23): 1184 bytes, perhaps certificates after it. */
function readSnp(bytes: Buffer): Evidence | undefined {
  if (bytes.length < 0x38) return undefined;
  const [version, algorithm] = [bytes.readUInt32LE(0), bytes.readUInt32LE(0x34)];
  const policy = bytes.readBigUInt64LE(0x08);
  // Bit 17 of the policy is always one, 1 is ECDSA P-384 with SHA-384
  const isSnp = version >= 2 && version <= 5 && algorithm === 1 && (policy & (1n << 17n)) !== 0n;
  if (!isSnp) return undefined;
  if (bytes.length < 1184)
    return { is: "damaged", why: `it is cut short: ${bytes.length} of 1184 bytes` };
  return {
    is: "read",
    format: "AMD SEV-SNP report",
    vendor: "AMD",
    registers: [{ name: "MEASUREMENT", value: bytes.toString("hex", 0x90, 0xc0) }],
    isDebug: (policy & (1n << 19n)) !== 0n,
    isBound: !isZero(bytes.subarray(0x50, 0x90)),
    bytes: bytes.length,
  };
}

/**
 * Quote of version 4 or 5 for a TD: a header of 48 bytes, in version 5 six more that name the body, the body, the
 * length of the signature and the signature.
 * https://download.01.org/intel-sgx/latest/dcap-latest/linux/docs/Intel_TDX_DCAP_Quoting_Library_API.pdf (appendix 3)
 */
function readTdx(bytes: Buffer): Evidence | undefined {
  const version = bytes.readUInt16LE(0);
  const keyType = bytes.readUInt16LE(2);
  const isTdx = (version === 4 || version === 5) && bytes.readUInt32LE(4) === 0x81;
  if (!isTdx || (keyType !== 2 && keyType !== 3)) return undefined;
  const body = version === 4 ? 48 : 54;
  const bodySize = version === 4 ? 584 : bytes.readUInt32LE(50);
  const bodyEnd = body + bodySize;
  const needed =
    bodySize < 584 || bytes.length < bodyEnd + 4
      ? bodyEnd + 4
      : bodyEnd + 4 + bytes.readUInt32LE(bodyEnd);
  if (bodySize < 584 || bytes.length < needed)
    return { is: "damaged", why: `it is cut short: ${bytes.length} of ${needed} bytes` };
  const register = (name: string, at: number) => ({
    name,
    value: bytes.toString("hex", body + at, body + at + 48),
  });
  return {
    is: "read",
    format: "Intel TDX quote",
    vendor: "Intel",
    registers: [
      register("MRTD", 136),
      ...[0, 1, 2, 3].map((index) => register(`RTMR${index}`, 328 + index * 48)),
    ],
    isDebug: ((bytes[body + 120] ?? 0) & 1) === 1,
    isBound: !isZero(bytes.subarray(body + 520, body + 584)),
    bytes: bytes.length,
  };
}

const isZero = (bytes: Buffer) => bytes.every((byte) => byte === 0);
