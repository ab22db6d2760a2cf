import { describe, expect, it } from "vitest";
import {
  afterChange,
  renderAttestation,
  reportFile,
} from "../../src/attestation/render-attestation.ts";
import { appraise } from "../../src/attestation/appraise.ts";
import { readEvidence } from "../../src/attestation/evidence.ts";
import {
  good,
  measurement,
  now,
  otherMeasurement,
  reportOf,
  snpReport,
  tdxQuote,
} from "./reports.ts";

const enabled = { attestation: { enabled: true } };

describe("an attestation in Slack", () => {
  it("says the verdict first, then why, and whose word it is", () => {
    const shown = renderAttestation({ name: "web-1" }, appraise(good()));
    expect(shown.text).toBe(
      "Reported as verified: web-1. The compute service says the report is verified. Its measurement is the VM's. It matches a pin.",
    );
    expect(shown.blocks).toMatchObject([
      {
        text: {
          text: expect.stringMatching(
            /^✅ \*Reported as verified\*: `web-1`\n• The compute service says/,
          ),
        },
      },
      {
        fields: [
          { text: "*Measurement*\n`a1b2…c3d4` as on the VM" },
          { text: "*Pins*\n`a1b2…c3d4`: matches" },
          { text: "*Platform*\nAMD · EPYC 9654 · firmware 1.55.37" },
          { text: expect.stringMatching(/^\*Report made\*\n<!date.*, 1 min ago$/) },
        ],
      },
      { type: "context" },
    ]);
    expect(JSON.stringify(shown)).toContain("provider's claim");
    expect(JSON.stringify(shown)).toContain("MEASUREMENT of the raw AMD SEV-SNP report");
  });

  it("shows the difference when it failed, and can't be tricked by the service's words", () => {
    const report = reportOf(snpReport(), {
      measurement: "<!channel> `x`",
      platform: { vendor: "<!here|x>", model: "*bold*" },
    });
    const shown = renderAttestation({ name: "web-`1`" }, appraise(good({ report })), [
      { label: "Raw report", action: "run:vm.attest:raw", value: "{}" },
    ]);
    const all = JSON.stringify(shown.blocks);
    expect(all).toContain("🔴 *Failed*");
    expect(all).toContain("*Difference*");
    expect(all).not.toMatch(/<!(channel|here)/);
    expect(all).toContain("Raw report");
  });

  it("says that it could not verify, and that no pin is set", () => {
    const shown = renderAttestation(
      { name: "web-1" },
      appraise(good({ pins: [], report: { error: new Error("x") } })),
    );
    expect(shown.text).toBe("Could not verify: web-1. The compute service gave no report.");
    expect(JSON.stringify(shown.blocks)).toContain("No pin is set");
  });
});

describe("the result of a change", () => {
  it("says that the VM is attested again", () => {
    const said = afterChange(enabled, appraise(good({ notBefore: now - 60_000 })));
    expect(said?.line.value).toBe("Attested again: ✅ verified (measurement a1b2…c3d4)");
    expect(said?.isAlarm).toBe(false);
  });

  it("turns red when the pin doesn't match any more", () => {
    const said = afterChange(enabled, appraise(good({ pins: [otherMeasurement] })));
    expect(said).toMatchObject({ isAlarm: true });
    expect(said?.line.value).toBe(
      "🔴 *The measurement no longer matches its pin.*\na1b2…c3d4 instead of 0f0e…0d0c: 48 of 48 bytes differ, from byte 1",
    );
    const unverified = appraise(good({ report: reportOf(snpReport(), { verified: false }) }));
    expect(afterChange(enabled, unverified)?.line.value).toBe(
      "🔴 *Attestation failed after this change.*\nthe compute service says the report is not verified",
    );
  });

  it("alarms nobody while it can't be known, and says nothing where nothing is attested", () => {
    const old = afterChange(enabled, appraise(good({ notBefore: now })));
    expect(old?.isAlarm).toBe(false);
    expect(old?.line.value).toBe(
      "Attestation: ❔ could not verify (the report is still the one from before the change)",
    );
    expect(afterChange({}, appraise(good()))).toBeUndefined();
  });
});

describe("the raw report", () => {
  it("is read as far as it can be without a network", () => {
    const snp = readEvidence(snpReport().toString("base64"));
    expect(snp).toMatchObject({
      is: "read",
      format: "AMD SEV-SNP report",
      registers: [{ name: "MEASUREMENT", value: measurement }],
      isDebug: false,
      isBound: true,
    });
    for (const version of [4, 5] as const) {
      const tdx = readEvidence(tdxQuote({}, version).toString("base64url"));
      expect(tdx).toMatchObject({ format: "Intel TDX quote", isDebug: false, isBound: true });
      expect(tdx.is === "read" && tdx.registers[0]).toEqual({ name: "MRTD", value: measurement });
      expect(tdx.is === "read" && tdx.registers.map(({ name }) => name)).toEqual([
        "MRTD",
        "RTMR0",
        "RTMR1",
        "RTMR2",
        "RTMR3",
      ]);
    }
    expect(readEvidence(Buffer.alloc(500, 1).toString("base64"))).toEqual({ is: "unknown" });
    expect(readEvidence(undefined)).toEqual({ is: "missing" });
    expect(readEvidence("A".repeat(1_000_001))).toMatchObject({ is: "damaged" });
  });

  it("comes as a file, with what was made of it", () => {
    const report = reportOf();
    const vm = { id: "vm-1", name: "../web 1", attestation: { enabled: true, measurement } };
    const { name, content } = reportFile(vm, report, appraise(good()), now);
    expect(name).toBe("attestation-..-web-1-2026-11-20T120000Z.json");
    expect(JSON.parse(content)).toMatchObject({ vm, report, appraisal: { verdict: "verified" } });
  });
});
