/**
 * A measurement in the one form in which two of them can be compared: lower-case hex. `0x`, spaces, colons and case
 * don't count; base64 of a usual length (32, 48 or 64 bytes) becomes hex; anything else stays as it is.
 */
export function normalize(measurement: string): string {
  const bare = measurement.trim().replaceAll(/[\s:]/g, "");
  const hex = bare.replace(/^0x/i, "").toLowerCase();
  if (/^([0-9a-f]{2})+$/.test(hex)) return hex;
  const bytes = fromBase64(bare);
  return bytes && [32, 48, 64].includes(bytes.length) ? bytes.toString("hex") : measurement.trim();
}

/** Strict base64 or base64url, white space allowed; undefined for anything else. `Buffer.from` would skip what it doesn't know. */
export function fromBase64(text: string): Buffer | undefined {
  const bare = text.replaceAll(/\s/g, "").replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$|^[A-Za-z0-9_-]*$/.test(bare) || bare.length % 4 === 1) return undefined;
  return Buffer.from(bare, "base64");
}

/** `4f2a…91bc`: enough to tell two apart at a glance; the whole one is in the report's file. */
export function short(measurement: string): string {
  const points = Array.from(measurement);
  return points.length <= 12
    ? measurement
    : `${points.slice(0, 4).join("")}…${points.slice(-4).join("")}`;
}

/** How two measurements differ, in words: `1 of 48 bytes differs: byte 17 is 4f, expected 4e`. Undefined when they are equal. */
export function difference(found: string, expected: string): string | undefined {
  const [is, should] = [normalize(found), normalize(expected)];
  if (is === should) return undefined;
  if (!isHex(is) || !isHex(should)) return `${short(is)} instead of ${short(should)}`;
  const [a, b] = [Buffer.from(is, "hex"), Buffer.from(should, "hex")];
  if (a.length !== b.length)
    return `${short(is)} (${a.length} bytes) instead of ${short(should)} (${b.length} bytes)`;
  const places = [...a.keys()].filter((at) => a[at] !== b[at]);
  const [first = 0] = places;
  const counted = `${places.length} of ${a.length} bytes ${places.length === 1 ? "differs" : "differ"}`;
  // A hash that changed differs nearly everywhere: only few differences are worth their places
  if (places.length > 3)
    return `${short(is)} instead of ${short(should)}: ${counted}, from byte ${first + 1}`;
  const each = places.map((at) => `byte ${at + 1} is ${hex(a[at])}, expected ${hex(b[at])}`);
  return `${counted}: ${each.join("; ")}`;
}

/** Of several expected ones, the one it differs from the least. */
export function nearestOf(found: string, expected: readonly string[]): string | undefined {
  const distance = (one: string) => {
    const [a, b] = [normalize(found), normalize(one)];
    const same = Array.from(a).filter((letter, at) => b[at] === letter).length;
    return Math.max(a.length, b.length) - same;
  };
  return expected.toSorted((a, b) => distance(a) - distance(b))[0];
}

const isHex = (text: string) => /^([0-9a-f]{2})+$/.test(text);
const hex = (byte: number | undefined) => (byte ?? 0).toString(16).padStart(2, "0");

/** What the raw report itself says. No signature is checked: a forged report reads the same. */
export type Evidence =
  | { is: "missing" }
  | { is: "damaged"; why: string }
  | { is: "unknown" }
  | {
      is: "read";
      format: "AMD SEV-SNP report" | "Intel TDX quote";
      vendor: "AMD" | "Intel";
      /** Hex. What may be called "the measurement" of it, by the name of its field. */
      registers: readonly { name: string; value: string }[];
      isDebug: boolean;
      /** 64 bytes that the machine put in, for a nonce or a key; all zero when it is bound to nothing. */
      isBound: boolean;
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
  return readTdx(bytes) ?? readSnp(bytes) ?? { is: "unknown" };
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
  };
}

const isZero = (bytes: Buffer) => bytes.every((byte) => byte === 0);
