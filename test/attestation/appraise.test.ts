import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  appraise,
  type AppraisalInput,
  gateRefusal,
  type Verdict,
} from "../../src/attestation/appraise.ts";
import { acceptedFor, pinsFor } from "../../src/attestation/pins.ts";
import { ComputeError } from "../../src/fleet/compute/compute.ts";
import { strictPolicy } from "../../src/verifier/appraisal-policy.ts";
import { good, measurement, now, otherMeasurement, snp, tdx, unread, writes } from "./reports.ts";

const lost = new ComputeError("unreachable", "GET /v1/vms/{vm_id}/attestation", "timeout");
const enabled = { attestation: { enabled: true } };
const dayMs = 86_400_000;
const without = { report: { error: lost }, verification: unread };

const answered = (kind: "conflict" | "unexpected", status?: number) =>
  new ComputeError(kind, "GET", "no", {
    status,
    serviceMessage: "web-1 is STOPPED <!channel>",
  });

/** One bit of it turned over after it was signed. */
const flipped = (evidence = snp(), at = 0x90) => {
  const bytes = Buffer.from(evidence.bytes);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return { ...evidence, bytes };
};
const debugged = snp((report) => (report[0x0a] = (report[0x0a] ?? 0) | 0x08));

describe("a VM's attestation", () => {
  it("is verified by the vendor's signatures and the pins, whatever the service adds", () => {
    for (const input of [
      good(),
      good({ evidence: tdx() }),
      good({ evidence: tdx(), pins: [measurement] }),
      good({ pins: [otherMeasurement, measurement] }),
      good({ vm: enabled }),
      good({ says: { measurement: undefined } as object }),
      good({ says: { verified: undefined } as object }),
      good({ notBefore: now - 61_000 }),
    ]) {
      const { verdict, reasons, notes, difference, validUntil } = appraise(input);
      expect({ verdict, difference }).toEqual({ verdict: "verified", difference: undefined });
      expect(reasons[0]).toMatch(/^(AMD's|Intel's) signature holds$/);
      expect(reasons).toContain("the measurement is pinned");
      expect(validUntil).toBeGreaterThan(now);
      expect(notes.join(" ")).toContain("Not fresh");
    }
  });

  it("says nothing of the service's word but beside it", () => {
    const { service, notes, evidence } = appraise(good());
    expect(service).toEqual({
      verified: true,
      platform: "AMD · EPYC 9654 · firmware 1.55.37",
      madeAt: now - 60_000,
      ageMs: 60_000,
    });
    expect(notes).toContain("The service's own verdict (verified) isn't used");
    expect(evidence).toBe("AMD SEV-SNP report, version 5, Genoa");
  });

  const bad: [what: string, input: () => AppraisalInput, verdict: Verdict, reason: RegExp][] = [
    ["a bit turned over", () => good({ evidence: flipped() }), "failed", /signature does not hold/],
    [
      "a bit turned over in TDX",
      () => good({ evidence: flipped(tdx(), 184) }),
      "failed",
      /quote's signature does not hold/,
    ],
    [
      "a no of the service",
      () => good({ says: { verified: false } }),
      "failed",
      /service says the report is not verified/,
    ],
    ["debugging", () => good({ evidence: debugged }), "failed", /debugging is on/],
    [
      "debugging in TDX",
      () => good({ evidence: tdx((body) => (body[120] = 1)) }),
      "failed",
      /debugging is on/,
    ],
    [
      "another image",
      () =>
        good({
          evidence: snp(writes(otherMeasurement, 0x90)),
          says: { measurement: otherMeasurement },
          vm: { attestation: { enabled: true, measurement: otherMeasurement } },
        }),
      "failed",
      /matches no pin/,
    ],
    [
      "another kernel in TDX, under the same firmware",
      () => good({ evidence: tdx(writes(otherMeasurement, 376)) }),
      "failed",
      /matches no pin/,
    ],
    [
      "a measurement that the service has other than the report",
      () => good({ evidence: snp(writes(otherMeasurement, 0x90)) }),
      "failed",
      /names a measurement that the report doesn't have/,
    ],
    [
      "a record other than the report",
      () => good({ vm: { attestation: { enabled: true, measurement: otherMeasurement } } }),
      "failed",
      /not the VM's/,
    ],
    [
      "another vendor's name",
      () => good({ says: { platform: { vendor: "Intel" } } }),
      "failed",
      /names another vendor/,
    ],
    ["another VM's report", () => good({ seen: "under another VM" }), "failed", /another VM's/],
    [
      "no report, and a record that no pin allows",
      () => good({ ...without, pins: [otherMeasurement] }),
      "failed",
      /matches no pin/,
    ],
    ["a pin of another length", () => good({ pins: ["beef"] }), "failed", /matches no pin/],
    [
      "the bytes from before the change",
      () => good({ seen: "before the change" }),
      "could not verify",
      /from before the change/,
    ],
    [
      "the time from before the change",
      () => good({ notBefore: now - 1000 }),
      "could not verify",
      /from before the change/,
    ],
    [
      "no time, where one is needed",
      () => good({ notBefore: now, says: { timestamp: "soon" } }),
      "could not verify",
      /when the report was made/,
    ],
    [
      "a report older than the VM",
      () => good({ says: { timestamp: "2025-12-31T23:00:00Z" } }),
      "could not verify",
      /older than the VM/,
    ],
    [
      "a report from the future",
      () => good({ says: { timestamp: new Date(now + 2 * dayMs).toISOString() } }),
      "could not verify",
      /future/,
    ],
    [
      "a cut report",
      () => good({ says: { report: snp().bytes.subarray(0, 1183).toString("base64") } }),
      "could not verify",
      /cut short/,
    ],
    ["no base64", () => good({ says: { report: "§§§" } }), "could not verify", /not base64/],
    ["no raw report", () => good({ says: { report: "" } }), "could not verify", /no raw report/],
    ["no answer", () => good(without), "could not verify", /can't be asked/],
    [
      "attestation switched off",
      () => good({ vm: { attestation: { enabled: false, measurement } } }),
      "could not verify",
      /not enabled/,
    ],
    ["no pin", () => good({ pins: [] }), "could not verify", /no measurement is pinned/],
    [
      "lists that ran out",
      () => good({ now: now + 31 * dayMs, says: { timestamp: new Date(now).toISOString() } }),
      "could not verify",
      /revocation list for Genoa has expired/,
    ],
    ["no endorsements", () => good({ endorsements: {} }), "could not verify", /is missing/],
  ];

  it.each(bad)("is not verified with %s", (_, input, verdict, reason) => {
    const appraisal = appraise(input());
    expect(appraisal.reasons.join("; ")).toMatch(reason);
    expect(appraisal.verdict).toBe(verdict);
  });

  it("says why there is no report", () => {
    const reasonOf = (error: unknown, over = {}) =>
      appraise(good({ ...without, report: { error }, ...over })).reasons;
    expect(reasonOf(answered("conflict", 409))).toEqual([
      "the compute service gave no report (409): web-1 is STOPPED <!channel>",
    ]);
    expect(reasonOf(answered("unexpected"))).toEqual([
      "the compute service's answer can't be read",
    ]);
    expect(reasonOf(new Error("boom"))).toEqual(["the compute service gave no report"]);
    const off = { vm: {} };
    expect(reasonOf(answered("conflict", 409), { ...off, pins: [] })).toEqual([
      "attestation is not enabled for this VM",
    ]);
    const saysOff = "attestation is not enabled for this VM, says the compute service, but";
    expect(reasonOf(answered("conflict", 409), off)).toEqual([`${saysOff} it is pinned`]);
    expect(reasonOf(answered("conflict", 409), { ...off, pins: [], attestedAt: 1 })).toEqual([
      `${saysOff} its evidence was seen before`,
    ]);
  });

  it("shows where measurements differ, the nearest pin first", () => {
    const off = `${measurement.slice(0, -1)}c`;
    const differenceFor = (pins: string[], its = off) =>
      appraise(
        good({
          evidence: snp(writes(its, 0x90)),
          says: { measurement: its },
          vm: { attestation: { enabled: true, measurement: its } },
          pins,
        }),
      ).difference;
    expect(differenceFor([otherMeasurement, measurement])).toBe(
      "1 of 48 bytes differs: byte 48 is ac, expected ab",
    );
    expect(differenceFor([otherMeasurement])).toMatch(/^abab…abac instead of 0f0e…0d0c$/);
    expect(differenceFor(["beef"])).toBe("abab…abac instead of beef");
    expect(appraise(good({ evidence: tdx(writes(otherMeasurement, 376)) })).difference).toMatch(
      /^0f0e…0d0c instead of/,
    );
  });

  it("compares the service's measurements whatever they are dressed in", () => {
    for (const dressed of [
      measurement.toUpperCase(),
      `0x${measurement}`,
      ` ${measurement.replaceAll(/(..)/g, "$1:").slice(0, -1)}\n`,
      Buffer.from(measurement, "hex").toString("base64"),
    ])
      expect(appraise(good({ says: { measurement: dressed } })).verdict).toBe("verified");
  });
});

describe("a gate", () => {
  const refusalOf = (over: Parameters<typeof good>[0] = {}) => gateRefusal(appraise(good(over)));

  it("opens for what is verified, and for VMs of which gatehouse.yml asks for no more", () => {
    expect(refusalOf()).toBeUndefined();
    expect(refusalOf({ pins: [] })).toBeUndefined();
    expect(refusalOf({ hasEndorsements: false, endorsements: {} })).toBeUndefined();
    expect(refusalOf({ hasEndorsements: false, endorsements: {}, pins: [] })).toBeUndefined();
  });

  it("stays shut for what contradicts, and where more was asked for than could be judged", () => {
    expect(refusalOf({ evidence: debugged })).toMatch(/debugging is on/);
    const none = { hasEndorsements: false, endorsements: {} };
    expect(refusalOf({ ...none, evidence: debugged })).toMatch(/debugging is on/);
    expect(refusalOf({ ...none, says: { verified: false } })).toMatch(/not verified/);
    expect(refusalOf({ ...none, pins: [otherMeasurement] })).toMatch(/matches no pin/);
    expect(refusalOf({ ...none, says: { report: "AAAA" } })).toBeUndefined();
    expect(refusalOf({ ...none, says: { report: "" } })).toMatch(/no raw report/);
    expect(refusalOf({ ...none, notBefore: now })).toMatch(/from before the change/);
    // Nobody asked for evidence of this one
    for (const report of ["", "see attachment", "§§§"])
      expect(refusalOf({ ...none, pins: [], says: { report } })).toBeUndefined();
    expect(refusalOf({ ...none, pins: [], attestedAt: now, says: { report: "" } })).toMatch(
      /no raw/,
    );
    expect(refusalOf({ ...none, pins: [], evidence: debugged })).toMatch(/debugging is on/);
    expect(refusalOf({ endorsements: {} })).toMatch(/is missing/);
    expect(refusalOf({ endorsements: {}, pins: [] })).toMatch(/is missing/);
    expect(refusalOf(without)).toMatch(/can't be asked/);
  });
});

describe("the appraisal of whatever comes", () => {
  const text = fc.option(
    fc.oneof(fc.string(), fc.constant(measurement), fc.constant(otherMeasurement)),
    { nil: undefined },
  );
  const [genuine, quote] = [snp(), tdx()];
  const raw = fc.oneof(
    text,
    fc
      .constantFrom(genuine.bytes, quote.bytes, debugged.bytes)
      .map((bytes) => bytes.toString("base64")),
    fc.uint8Array({ maxLength: 1400 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  );
  const optional = fc.option(fc.boolean(), { nil: undefined });
  const inputs = fc.record({
    raw,
    claimed: text,
    verified: optional,
    recorded: text,
    isOn: optional,
    pins: fc.array(fc.constantFrom(measurement, otherMeasurement), { maxLength: 2 }),
    hasEndorsements: fc.boolean(),
  });

  it("is verified only with genuine evidence, a pin that it matches, and nothing against it", () => {
    const { amd } = genuine.endorsements;
    const { intel } = quote.endorsements;
    const roots = { ...genuine.roots, intel: quote.roots.intel };
    fc.assert(
      fc.property(inputs, ({ raw: report, claimed, recorded, isOn, hasEndorsements, ...rest }) => {
        const input = good({
          evidence: { ...genuine, roots },
          endorsements: hasEndorsements && amd && intel ? { amd, intel } : {},
          hasEndorsements,
          says: { report, measurement: claimed, verified: rest.verified, platform: {} } as object,
          vm: { attestation: { enabled: isOn, measurement: recorded } as object },
          pins: rest.pins,
        });
        const { verdict, reasons } = appraise(input);
        expect(reasons.length).toBeGreaterThan(0);
        if (verdict !== "verified") return;
        const bytes = Buffer.from(report ?? "", "base64");
        expect([genuine.bytes, quote.bytes].some((one) => one.equals(bytes))).toBe(true);
        expect([hasEndorsements, rest.verified === false, isOn === false]).toEqual([
          true,
          false,
          false,
        ]);
        expect(rest.pins).toContain(measurement);
        for (const named of [claimed, recorded])
          if (named?.trim()) expect(rest.pins).toContain(named);
      }),
      { numRuns: 100 },
    );
  });
});

describe("the rules for a VM", () => {
  it("are the pins of every rule that names it, by name, id or project", () => {
    const pins = [
      { targets: ["prod-*"], measurements: ["aa", "bb"] },
      { targets: ["vm-7", "payments/*"], measurements: ["bb", "cc"] },
    ];
    expect(pinsFor(pins, ["prod-web"])).toEqual(["aa", "bb"]);
    expect(pinsFor(pins, ["web", "vm-7"])).toEqual(["bb", "cc"]);
    expect(pinsFor(pins, ["prod-web", "x", "payments/prod-web"])).toEqual(["aa", "bb", "cc"]);
    expect(pinsFor(pins, ["web"])).toEqual([]);
  });

  it("are of appraisal the first that speaks of it, and without one nothing is accepted", () => {
    const debug = { ...strictPolicy, allows: ["debug" as const] };
    const rules = [
      { targets: ["test-*"], policy: debug },
      { targets: undefined, policy: strictPolicy },
    ];
    expect(acceptedFor(rules, ["test-1"])).toBe(debug);
    expect(acceptedFor(rules, ["prod-1", "vm-7", "test/prod-1"])).toBe(strictPolicy);
    expect(acceptedFor(rules.slice(0, 1), ["prod-1"])).toBe(strictPolicy);
    expect(appraise(good({ evidence: debugged, policy: debug }))).toMatchObject({
      verdict: "verified",
      notes: expect.arrayContaining([expect.stringMatching(/debugging is on/)]),
    });
  });
});
