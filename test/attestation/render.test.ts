import { describe, expect, it } from "vitest";
import { appraise } from "../../src/attestation/appraise.ts";
import { afterChange } from "../../src/attestation/render-attestation.ts";
import { good, now, otherMeasurement } from "./reports.ts";

describe("the result of a change", () => {
  it("says that the VM is attested again, and by whom", () => {
    const said = afterChange(appraise(good({ notBefore: now - 60_000 })));
    expect(said?.line.value).toBe(
      "Attested again: ✅ verified by Gatehouse (measurement abab…abab)",
    );
    expect(said?.but).toBeUndefined();
  });

  it("turns red when the pin doesn't match any more", () => {
    const said = afterChange(appraise(good({ pins: [otherMeasurement] })));
    expect(said?.but).toBe("its measurement no longer matches its pin");
    expect(said?.line.value).toBe("🔴 Measurement: abab…abab instead of 0f0e…0d0c.");
    const before = {
      reason: "the measurement matches no pin",
      since: now - 3_600_000,
      changedAt: now,
    };
    const still = afterChange(appraise(good({ pins: [otherMeasurement] })), before);
    expect(still?.but).toBe("its measurement still matches no pin");
    expect(still?.line.value).toContain("It has failed since ");
    const other = { ...before, reason: "debugging is on" };
    expect(afterChange(appraise(good({ pins: [otherMeasurement] })), other)?.but).toBe(said?.but);
    const unverified = afterChange(appraise(good({ says: { verified: false } })));
    expect(unverified?.but).toBe("its attestation failed");
    expect(unverified?.line.value).toBe("🔴 The compute service says the report is not verified.");
  });

  it("alarms nobody while it can't be known, and says nothing where nothing is attested", () => {
    const old = afterChange(appraise(good({ notBefore: now })));
    expect(old?.but).toBeUndefined();
    expect(old?.line.value).toBe(
      "Attestation: ❔ could not verify (the report is still the one from before the change)",
    );
    expect(
      afterChange(appraise(good({ vm: {}, report: { error: new Error("none") }, pins: [] }))),
    ).toBeUndefined();
  });
});
