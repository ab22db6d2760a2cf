import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  appraise,
  type AppraisalInput,
  type Verdict,
  pinsFor,
} from "../../src/attestation/appraise.ts";
import { ComputeError } from "../../src/compute/errors.ts";
import {
  good,
  measurement,
  now,
  otherMeasurement,
  reportOf,
  snpReport,
  tdxQuote,
} from "./reports.ts";

const withoutFlag = reportOf();
delete withoutFlag.verified;
const intel = { platform: { vendor: "Intel", model: "Xeon (TDX)" } };
const offByOne = `${measurement.slice(0, -1)}5`;
const lost = new ComputeError("unreachable", "GET /v1/vms/{vm_id}/attestation", "timeout");
const enabled = { enabled: true };

const answered = (kind: "conflict" | "unexpected", status?: number) =>
  new ComputeError(kind, "GET", "no", {
    status,
    serviceMessage: "web-1 is STOPPED <!channel>",
  });
const reasonOf = (error: unknown) => appraise(good({ report: { error } })).reasons;

/** Flips one bit of the first byte of the measurement inside. */
function flipped(raw: Buffer, at: number): Buffer {
  raw[at] = (raw[at] ?? 0) ^ 1;
  return raw;
}

describe("a VM's attestation", () => {
  it("is verified when the service says so and all that can be compared agrees", () => {
    for (const input of [
      good(),
      good({ report: reportOf(tdxQuote(), intel) }),
      good({ report: reportOf(tdxQuote({}, 5), intel) }),
      good({ report: reportOf(Buffer.alloc(2000, 8)) }),
      good({ pins: [] }),
      good({ pins: [otherMeasurement, measurement] }),
      good({ vm: { name: "web-1", attestation: enabled } }),
      good({ staleAfterMs: 120_000, notBefore: now - 61_000 }),
    ]) {
      const { verdict, reasons, notes, difference } = appraise(input);
      expect({ verdict, difference }).toEqual({ verdict: "verified", difference: undefined });
      expect(reasons[0]).toBe("the compute service says the report is verified");
      expect(notes.join(" ")).toContain("provider's claim");
      expect(notes.join(" ")).toContain("Not fresh");
    }
  });

  // Evidence that must never be verified. A wrong and a reused nonce can't be had: the service takes none, which
  // every result says. What only a signature shows (collateral, revocation, root) is the service's own verdict.
  const bad: [what: string, input: AppraisalInput, verdict: Verdict, reason: RegExp][] = [
    [
      "a flipped byte in SEV-SNP",
      good({ report: reportOf(flipped(snpReport(), 0x90)) }),
      "failed",
      /a measurement other than the one the compute service names/,
    ],
    [
      "a flipped byte in TDX",
      good({ report: reportOf(flipped(tdxQuote(), 184), intel) }),
      "failed",
      /a measurement other than the one the compute service names/,
    ],
    ["an old report", good({ staleAfterMs: 59_000 }), "could not verify", /too old/],
    [
      "a report from before the change",
      good({ notBefore: now - 1000 }),
      "could not verify",
      /from before the change/,
    ],
    [
      "another VM's report",
      good({
        report: reportOf(snpReport({ measurement: otherMeasurement }), {
          measurement: otherMeasurement,
        }),
      }),
      "failed",
      /not the VM's/,
    ],
    [
      "a report older than the VM",
      good({ report: reportOf(snpReport(), { timestamp: "2025-12-31T23:00:00Z" }) }),
      "could not verify",
      /older than the VM/,
    ],
    [
      "the debug bit in SEV-SNP",
      good({ report: reportOf(snpReport({ debug: true })) }),
      "failed",
      /debugging is on/,
    ],
    [
      "the debug bit in TDX",
      good({ report: reportOf(tdxQuote({ debug: true }), intel) }),
      "failed",
      /debugging is on/,
    ],
    [
      "a measurement off by one",
      good({ report: reportOf(snpReport({ measurement: offByOne }), { measurement: offByOne }) }),
      "failed",
      /matches no pin/,
    ],
    [
      "drift: record and report agree, the pin doesn't",
      good({ pins: [otherMeasurement] }),
      "failed",
      /matches no pin/,
    ],
    [
      "expired collateral, a revoked certificate or a wrong root, seen by the service",
      good({ report: reportOf(snpReport(), { verified: false }) }),
      "failed",
      /service says the report is not verified/,
    ],
    [
      "missing report data",
      good({ report: reportOf(snpReport({ unbound: true })) }),
      "could not verify",
      /bound to nothing/,
    ],
    [
      "missing report data in TDX",
      good({ report: reportOf(tdxQuote({ unbound: true }), intel) }),
      "could not verify",
      /bound to nothing/,
    ],
    [
      "a cut report",
      good({ report: reportOf(snpReport().subarray(0, 1183)) }),
      "could not verify",
      /cut short/,
    ],
    [
      "a cut quote",
      good({ report: reportOf(tdxQuote().subarray(0, 1000), intel) }),
      "could not verify",
      /cut short/,
    ],
    [
      "a few bytes",
      good({ report: reportOf(snpReport().subarray(0, 100)) }),
      "could not verify",
      /too short/,
    ],
    [
      "no base64",
      good({ report: reportOf("§§§ not a report §§§") }),
      "could not verify",
      /not base64/,
    ],
    ["no raw report", good({ report: reportOf("") }), "could not verify", /no raw report/],
    [
      "a service that can't be asked",
      good({ report: { error: lost } }),
      "could not verify",
      /can't be asked/,
    ],
    ["an unknown flag", good({ report: withoutFlag }), "could not verify", /doesn't say/],
    [
      "attestation switched off",
      good({ vm: { name: "a", attestation: { enabled: false, measurement } } }),
      "could not verify",
      /not enabled/,
    ],
    [
      "a report from the future",
      good({ report: reportOf(snpReport(), { timestamp: "2026-11-20T13:00:00Z" }) }),
      "could not verify",
      /future/,
    ],
    [
      "no time, where one is needed",
      good({ notBefore: now, report: reportOf(snpReport(), { timestamp: "soon" }) }),
      "could not verify",
      /when it was made/,
    ],
    [
      "no measurement",
      good({ report: reportOf(snpReport(), { measurement: " " }) }),
      "could not verify",
      /names no measurement/,
    ],
    [
      "nothing to compare with",
      good({ pins: [], vm: { name: "a", attestation: enabled } }),
      "could not verify",
      /nothing to compare/,
    ],
    [
      "another vendor's report",
      good({ report: reportOf(tdxQuote()) }),
      "failed",
      /names another platform/,
    ],
    [
      "no report, and a record that no pin allows",
      good({ report: { error: lost }, pins: [otherMeasurement] }),
      "failed",
      /matches no pin/,
    ],
  ];

  it.each(bad)("is not verified with %s", (_, input, verdict, reason) => {
    const appraisal = appraise(input);
    expect(appraisal.verdict).toBe(verdict);
    expect(appraisal.reasons.join("; ")).toMatch(reason);
  });

  it("says why there is no report", () => {
    expect(reasonOf(answered("conflict", 409))).toEqual([
      "the compute service gave no report (409): web-1 is STOPPED <!channel>",
    ]);
    expect(reasonOf(answered("unexpected"))).toEqual([
      "the compute service's answer can't be read",
    ]);
    expect(reasonOf(new Error("boom"))).toEqual(["the compute service gave no report"]);
    const off = good({ report: { error: answered("conflict", 409) }, vm: { name: "a" } });
    expect(appraise(off).reasons).toEqual(["attestation is not enabled for this VM"]);
  });

  it("shows where measurements differ, the nearest pin first", () => {
    const off = good({
      report: reportOf(snpReport({ measurement: offByOne }), { measurement: offByOne }),
      pins: [otherMeasurement, measurement],
    });
    expect(appraise(off).difference).toBe("1 of 48 bytes differs: byte 48 is d5, expected d4");
    expect(appraise(good({ pins: [otherMeasurement] })).difference).toBe(
      "a1b2…c3d4 instead of 0f0e…0d0c: 48 of 48 bytes differ, from byte 1",
    );
    expect(appraise(good({ pins: ["beef"] })).difference).toBe(
      "a1b2…c3d4 (48 bytes) instead of beef (2 bytes)",
    );
  });

  it("compares measurements whatever they are dressed in", () => {
    for (const dressed of [
      measurement.toUpperCase(),
      `0x${measurement}`,
      ` ${measurement.replaceAll(/(..)/g, "$1:").slice(0, -1)}\n`,
      Buffer.from(measurement, "hex").toString("base64"),
    ])
      expect(
        appraise(good({ report: reportOf(snpReport(), { measurement: dressed }) })).verdict,
      ).toBe("verified");
  });
});

type There<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function isThere<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}

/** Without the fields that are undefined. */
function there<T extends object>(fields: T): There<T> {
  const kept: There<T> = {};
  for (const key in fields) {
    const value = fields[key];
    if (isThere(value)) kept[key] = value;
  }
  return kept;
}

describe("the appraisal of whatever comes", () => {
  const text = fc.option(
    fc.oneof(fc.string(), fc.constant(measurement), fc.constant(otherMeasurement)),
    { nil: undefined },
  );
  const raw = fc.oneof(
    text,
    fc
      .constantFrom(snpReport(), tdxQuote(), snpReport({ debug: true }))
      .map((bytes) => bytes.toString("base64")),
    fc.uint8Array({ maxLength: 1400 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  );
  const optional = fc.option(fc.boolean(), { nil: undefined });
  const inputs = fc
    .record({
      raw,
      claimed: text,
      verified: optional,
      timestamp: fc.option(fc.constantFrom("", "2026-11-20T11:59:00Z", "2030-01-01T00:00:00Z"), {
        nil: undefined,
      }),
      recorded: text,
      isOn: optional,
      pins: fc.array(fc.constantFrom(measurement, otherMeasurement), { maxLength: 2 }),
      isLost: fc.boolean(),
    })
    .map((parts) => {
      const { raw: report, claimed, verified, timestamp, recorded, isOn, pins } = parts;
      const input: AppraisalInput = {
        vm: { name: "a", attestation: there({ enabled: isOn, measurement: recorded }) },
        report: parts.isLost
          ? { error: lost }
          : there({ report, measurement: claimed, verified, timestamp }),
        pins,
        now,
      };
      return { input, parts };
    });

  it("is verified only with a yes, a raw report, and a measurement that nothing contradicts", () => {
    fc.assert(
      fc.property(inputs, ({ input, parts }) => {
        const { verdict, reasons } = appraise(input);
        expect(reasons.length).toBeGreaterThan(0);
        if (verdict !== "verified") return;
        expect([parts.isLost, parts.verified, parts.isOn === false]).toEqual([false, true, false]);
        expect(parts.raw?.trim() && parts.claimed?.trim()).toBeTruthy();
        if (parts.recorded?.trim()) expect(parts.recorded.trim()).toBe(parts.claimed?.trim());
        if (parts.pins.length > 0) expect(parts.pins).toContain(parts.claimed);
      }),
      { numRuns: 500 },
    );
  });

  it("never turns better by taking away evidence or adding a pin that doesn't match", () => {
    fc.assert(
      fc.property(inputs, ({ input }) => {
        if (appraise(input).verdict === "verified") return;
        const without: AppraisalInput = { ...input, report: { error: lost } };
        expect(appraise(without).verdict).not.toBe("verified");
        if ("error" in input.report) return;
        const rest = { ...input.report };
        delete rest.report;
        expect(appraise({ ...input, report: rest }).verdict).not.toBe("verified");
      }),
    );
    fc.assert(
      fc.property(inputs, ({ input }) => {
        const strict = appraise({ ...input, pins: ["00".repeat(48)] });
        expect(strict.verdict).not.toBe("verified");
      }),
    );
  });

  it("finds every change of the measurement inside a report", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 47 }),
        fc.integer({ min: 1, max: 255 }),
        fc.constantFrom("snp", "tdx"),
        (at, mask, format) => {
          const [bytes, from] = format === "snp" ? [snpReport(), 0x90] : [tdxQuote(), 184];
          bytes[from + at] = (bytes[from + at] ?? 0) ^ mask;
          const report = reportOf(bytes, format === "snp" ? {} : intel);
          expect(appraise(good({ report })).verdict).toBe("failed");
        },
      ),
    );
  });
});

describe("the pins of a VM", () => {
  it("are those of every rule that names it, by name, id or project", () => {
    const pins = [
      { targets: ["prod-*"], measurements: ["aa", "bb"] },
      { targets: ["vm-7", "payments/*"], measurements: ["bb", "cc"] },
    ];
    expect(pinsFor(pins, ["prod-web"])).toEqual(["aa", "bb"]);
    expect(pinsFor(pins, ["web", "vm-7"])).toEqual(["bb", "cc"]);
    expect(pinsFor(pins, ["prod-web", "x", "payments/prod-web"])).toEqual(["aa", "bb", "cc"]);
    expect(pinsFor(pins, ["web"])).toEqual([]);
  });
});
