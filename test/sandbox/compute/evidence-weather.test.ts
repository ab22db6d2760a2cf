import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  evidenceWeather,
  evidenceWeathers,
  type EvidenceWeatherName,
} from "../../../sandbox/compute/evidence-weather.ts";
import { launchMeasurement } from "../../../sandbox/compute/records.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { writeEndorsements } from "../../../sandbox/evidence/vendors.ts";
import { createCompute } from "../../../src/fleet/compute/create-compute.ts";
import { policyOf } from "../../core/permit/sample.ts";
import { sandboxAppraiser } from "../../support/appraiser.ts";
import { testRedis } from "../../support/with-redis.ts";
import { createMints } from "../../verifier/judging.ts";
import { requiredCases } from "../../verifier/required-cases.ts";

const service = await startSandboxCompute({ world: "empty" });
const compute = createCompute({ baseUrl: service.url, apiKey: service.apiKey, timeoutMs: 60_000 });
const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-weather-"));
const { redis, key, ...at } = await testRedis();
const policy = policyOf(`access: { view: ["*"] }
attestation:
  endorsements: ${folder}
  pins: [{ targets: ["case-*"], measurements: ["${launchMeasurement("as pinned", 2)}"] }]
  appraisal: [{ minimumTcb: [{ product: Genoa, snp: 23, microcode: 84 }] }]
`);
const appraiser = sandboxAppraiser({ compute, policy, redis, key });
const project = service.edit.addProject({ name: "weather", type: "TEE_VM", region: "eu" });
afterAll(async () => {
  await compute.close();
  await service.close();
  await at[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const names = Object.keys(evidenceWeathers) as EvidenceWeatherName[];

describe("the sandbox's weather of evidence", () => {
  it.each(names)("%s gets its result", async (weather) => {
    const { verdict, label, ...its } = evidenceWeather(weather);
    const name = `case-${weather}`;
    const vm = service.edit.addVm({
      project,
      name,
      status: "RUNNING",
      attested: true,
      specs: { cpu: 2, memory: 8, disk: 50 },
    });
    service.edit.setMachine({ vm, image: "as pinned" });
    service.edit.setEvidence({ vm, weather });
    await writeEndorsements(folder, { changed: evidenceWeather(weather) });
    const named = { id: vm, name: its.name ?? name, projectId: project };
    const judge = async (notBefore?: { notBefore: number }) =>
      (await appraiser.attest(named, notBefore)).appraisal;
    // An old report was a good one once
    const before = its.replays === "its own" ? await judge() : undefined;
    expect(before?.verdict ?? "verified").toBe("verified");
    const found = await judge(before && { notBefore: Date.now() + 1 });
    expect([label, found.verdict, found.reasons]).toEqual([label, verdict, expect.anything()]);
  });

  it("is there for every required result but the clock's, which no VM has", () => {
    const cases = new Set(requiredCases(createMints()).map(({ row }) => row));
    const shown = new Set<number | undefined>(
      names.map((weather) => evidenceWeather(weather).case),
    );
    expect([...cases].filter((row) => !shown.has(row))).toEqual([41]);
  });
});
