import type { AppraisalInput } from "../../src/attestation/appraise.ts";
import type { AttestationReport } from "../../src/compute/compute.ts";

export const now = Date.parse("2026-11-20T12:00:00Z");
/** 48 bytes, as SEV-SNP and TDX measure. */
export const measurement = "a1b2c3d4".repeat(12);
export const otherMeasurement = "0f0e0d0c".repeat(12);

export interface Inside {
  measurement?: string;
  debug?: boolean;
  /** Zero bytes instead of report data. */
  unbound?: boolean;
}

/** A SEV-SNP report as the firmware lays it out, signed by nobody. */
export function snpReport(inside: Inside = {}): Buffer {
  const bytes = Buffer.alloc(1184, 0x5a);
  bytes.writeUInt32LE(3, 0);
  bytes.writeBigUInt64LE(0x30000n | (inside.debug ? 1n << 19n : 0n), 0x08);
  bytes.writeUInt32LE(1, 0x34);
  bytes.fill(inside.unbound ? 0 : 7, 0x50, 0x90);
  Buffer.from(inside.measurement ?? measurement, "hex").copy(bytes, 0x90);
  return bytes;
}

/** A TDX quote of version 4 or 5, with a signature of nobody. */
export function tdxQuote(inside: Inside = {}, version: 4 | 5 = 4): Buffer {
  const body = Buffer.alloc(584, 0x33);
  body[120] = inside.debug ? 1 : 0;
  Buffer.from(inside.measurement ?? measurement, "hex").copy(body, 136);
  body.fill(inside.unbound ? 0 : 9, 520);
  const header = Buffer.alloc(version === 4 ? 48 : 54);
  header.writeUInt16LE(version, 0);
  header.writeUInt16LE(2, 2);
  header.writeUInt32LE(0x81, 4);
  if (version === 5) {
    header.writeUInt16LE(2, 48);
    header.writeUInt32LE(584, 50);
  }
  const signature = Buffer.alloc(4 + 700, 0x44);
  signature.writeUInt32LE(700, 0);
  return Buffer.concat([header, body, signature]);
}

export function reportOf(
  raw: Buffer | string = snpReport(),
  change: Partial<AttestationReport> = {},
): AttestationReport {
  return {
    report: typeof raw === "string" ? raw : raw.toString("base64"),
    measurement,
    verified: true,
    timestamp: new Date(now - 60_000).toISOString(),
    platform: { vendor: "AMD", model: "EPYC 9654", firmwareVersion: "1.55.37" },
    ...change,
  };
}

/** A VM, its report and its pin that fit together. */
export function good(change: Partial<AppraisalInput> = {}): AppraisalInput {
  return {
    vm: {
      name: "web-1",
      createdAt: "2026-01-01T00:00:00Z",
      attestation: { enabled: true, measurement },
    },
    report: reportOf(),
    pins: [measurement],
    now,
    ...change,
  };
}
