import { type Problem, problem, type Shortfall } from "../reasons.ts";
import type { Product } from "../roots.ts";

/**
 * The content of an ATTESTATION_REPORT (https://docs.amd.com/v/u/en-US/56860). Numbers are
 * little-endian; the rest is hex.
 */
export type SnpFacts = ReturnType<typeof factsOf>;

export type SnpReport = Exclude<ReturnType<typeof readReport>, Problem>;

export const reportBytes = 1184;
const signedBytes = 0x2a0;
const maskedSigner = 7;

export function readReport(bytes: Buffer) {
  if (bytes.length < reportBytes)
    return problem("report-truncated", `${bytes.length} of ${reportBytes} bytes`);
  const [version, algorithm] = [bytes.readUInt32LE(0), bytes.readUInt32LE(0x34)];
  if (version < 2 || version > 5) return problem("report-version", String(version));
  if (algorithm !== 1) return problem("report-algorithm", String(algorithm));
  const key = (bytes.readUInt32LE(0x48) >> 2) & 7;
  if (key > 1 && key !== maskedSigner) return problem("report-signer", String(key));
  const policy = bytes.readBigUInt64LE(0x08);
  /** Problems of a report that can be read nevertheless. */
  const problems: Problem[] = [];
  if ((policy & (1n << 17n)) === 0n) problems.push(problem("report-policy"));
  if (key === maskedSigner) problems.push(problem("report-unsigned"));
  // The signature doesn't cover these bytes. They must be zero, because otherwise one report could
  // have many forms.
  for (const [from, to] of [
    [0x2a0 + 48, 0x2e8],
    [0x2e8 + 48, 0x330],
    [0x330, reportBytes],
  ] as const) {
    const at = bytes.subarray(from, to).findIndex((byte) => byte !== 0);
    if (at >= 0) problems.push(problem("report-reserved", `0x${(from + at).toString(16)}`));
  }
  return {
    facts: factsOf(bytes, version, policy, key === 1 ? "VLEK" : "VCEK"),
    signed: bytes.subarray(0, signedBytes),
    // r and s, big-endian.
    signature: Buffer.concat([
      bytes.subarray(0x2a0, 0x2a0 + 48).toReversed(),
      bytes.subarray(0x2e8, 0x2e8 + 48).toReversed(),
    ]),
    problems,
    // Padding, or a table of certificates.
    rest: bytes.subarray(reportBytes),
  };
}

function factsOf(bytes: Buffer, version: number, policy: bigint, signer: "VCEK" | "VLEK") {
  const hex = (from: number, length: number) => bytes.toString("hex", from, from + length);
  const build = (at: number) => [bytes[at + 2], bytes[at + 1], bytes[at]].join(".");
  const [family = 0, model = 0, stepping = 0] = bytes.subarray(0x188, 0x18b);
  return {
    tee: "snp" as const,
    version,
    guestSvn: bytes.readUInt32LE(0x04),
    policy,
    vmpl: bytes.readUInt32LE(0x30),
    signer,
    platformInfo: bytes.readBigUInt64LE(0x40),
    // Eight bytes each. The meaning of each byte depends on the product (`tcbParts`).
    currentTcb: hex(0x38, 8),
    reportedTcb: hex(0x180, 8),
    committedTcb: hex(0x1e0, 8),
    launchTcb: hex(0x1f0, 8),
    ...(version >= 3 ? { cpuid: { family, model, stepping } } : {}),
    firmware: build(0x1e8),
    committedFirmware: build(0x1ec),
    // All zero when the host masks it.
    chipId: hex(0x1a0, 64),
    reportId: hex(0x140, 32),
    measurement: hex(0x90, 48),
    hostData: hex(0xc0, 32),
    idKeyDigest: hex(0xe0, 48),
    authorKeyDigest: hex(0x110, 48),
    reportData: hex(0x50, 64),
  };
}

/** Undefined for a processor that this code doesn't know. */
export function productOf({ family, model }: NonNullable<SnpFacts["cpuid"]>): Product | undefined {
  if (family === 0x19 && model <= 0x0f) return "Milan";
  // The second range is Bergamo and Siena.
  if (family === 0x19 && ((model >= 0x10 && model <= 0x1f) || (model >= 0xa0 && model <= 0xaf)))
    return "Genoa";
  return family === 0x1a && model <= 0x11 ? "Turin" : undefined;
}

export const tcbPartNames = ["fmc", "bootloader", "tee", "snp", "microcode"] as const;
export type TcbParts = Partial<Record<(typeof tcbPartNames)[number], number>>;

const places: Record<Product, TcbParts> = {
  Milan: { bootloader: 0, tee: 1, snp: 6, microcode: 7 },
  Genoa: { bootloader: 0, tee: 1, snp: 6, microcode: 7 },
  Turin: { fmc: 0, bootloader: 1, tee: 2, snp: 3, microcode: 7 },
};

/** The parts of a TCB version, which are eight bytes whose order depends on the product. */
export function tcbParts(hex: string, product: Product): TcbParts {
  const bytes = Buffer.from(hex, "hex");
  const entries = Object.entries(places[product]).map(([part, at]) => [part, bytes[at] ?? 0]);
  return Object.fromEntries(entries);
}

/** The component that updates a part. The parts that aren't listed come with the BIOS. */
const bringers: Partial<Record<keyof TcbParts, string>> = {
  snp: "SNP firmware or BIOS",
  microcode: "microcode or BIOS",
};

/** The parts that are lower in `low` than in `high`, with what updates them. */
export function partsBelow(low: TcbParts, high: TcbParts): readonly Shortfall[] {
  return tcbPartNames.flatMap((part) => {
    const [has, needs] = [low[part] ?? 0, high[part] ?? 0];
    return has < needs ? [{ part, has, needs, by: bringers[part] ?? "BIOS" }] : [];
  });
}
