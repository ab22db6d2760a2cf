import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeEndorsements } from "../../../sandbox/evidence/vendors.ts";
import { emptyPolicy } from "../../../src/config/policy-file.ts";
import { createCompute } from "../../../src/fleet/compute/create-compute.ts";
import type { KnownVm } from "../../../src/fleet/inventory/inventory.ts";
import { silentLog } from "../../../src/log/log.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import {
  driftProbe,
  rememberVerdicts,
  withdrawTold,
} from "../../../src/features/attest/drift-probe.ts";
import { runProbe } from "../../../src/monitor/monitor.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { sandboxAppraiser } from "../../support/appraiser.ts";
import { testRedis } from "../../support/with-redis.ts";
import { withAppraisalsTold } from "../../../src/attestation/appraiser.ts";
import { Trail } from "../../../src/audit/trail.ts";
import { createDriftRecords, dayMs, lackingIn } from "../../../src/monitor/drift-records.ts";
import { createTeller } from "../../monitor/teller.ts";
import { knownVm } from "../../../demo/cards/requests.ts";

async function startDrift({ folder }: { folder?: string } = {}) {
  const redis = await testRedis();
  const service = await startSandboxCompute();
  const log = silentLog();
  const compute = createCompute({
    baseUrl: service.url,
    apiKey: service.apiKey,
    timeoutMs: 60_000,
  });
  const records = createDriftRecords(redis.redis, redis.key);
  const known = async () => [...(await records.readRecords()).values()];
  const { said, texts, waiting, timePasses, ...teller } = createTeller();
  let explains: StoredRequest | undefined;
  let passedMs = 0;
  const now = () => Date.now() + passedMs;
  const trail = new Trail(redis.redis, redis.key);
  const telling = { ...teller, trail, tellingRequest: async () => explains };
  /** What the audit trail has, oldest first. */
  const recorded = async () => {
    const entries = await trail.recordsBefore(undefined, 100);
    return entries.toReversed().map(({ record }): unknown => JSON.parse(record));
  };
  const { attestation } = await compute.vms.get("vm-payments-web-2");
  const pins = [{ targets: ["payments/*"], measurements: [attestation?.measurement ?? ""] }];
  const policy = emptyPolicy();
  const judged = { ...policy, attestation: { ...policy.attestation, pins, endorsements: folder } };
  const web2: KnownVm = { ...knownVm("web-2", "RUNNING", "payments"), id: "vm-payments-web-2" };
  const dead = { ...records, writeRecords: () => Promise.reject(new Error("killed")) };
  const remembering = (vms: readonly KnownVm[], kept: typeof records) =>
    withAppraisalsTold(
      sandboxAppraiser({ compute, policy: judged, ...redis }),
      rememberVerdicts({
        inventory: {
          async findVm(id) {
            const found = vms.find((vm) => vm.id === id);
            return found ? { record: found } : { unknown: [] };
          },
        },
        records: kept,
        ...telling,
        log,
        now,
      }),
    );
  const run = async (vms: readonly KnownVm[] = [web2], processes = 1, dies = false) => {
    const runs = await Promise.allSettled(
      Array.from({ length: processes }, () =>
        runProbe(
          driftProbe({
            appraiser: remembering(vms, dies ? dead : records),
            log,
            ...telling,
            inventory: { vms: async () => vms },
            pins: () => pins,
            records: dies ? dead : records,
            everyMs: 400,
            now,
          }),
        ),
      ),
    );
    expect(runs.some(({ status }) => status === "rejected")).toBe(dies);
  };
  return {
    service,
    records,
    known,
    run,
    said,
    texts,
    waiting,
    timePasses,
    recorded,
    /** Turns the clock on. */
    passes: (ms: number) => void (passedMs += ms),
    /** From now on this request explains why the measurement changed. */
    explainedBy: (request: StoredRequest | undefined) => void (explains = request),
    told: withdrawTold({ ...telling, records, log }),
    web2,
    redis,
    [Symbol.asyncDispose]: async () => {
      await compute.close();
      await service.close();
      await redis[Symbol.asyncDispose]();
    },
  };
}

describe.concurrent("watching pinned VMs for drift", () => {
  it("reports a mismatch once, again when it changes, and its end once", async () => {
    await using at = await startDrift();
    await at.run();
    expect(at.texts()).toEqual([]);
    at.service.edit.setMeasurement({ vm: "vm-payments-web-2", measurement: "ab".repeat(48) });
    await at.run();
    await at.run();
    expect(at.texts()).toEqual([
      "🔴 Attestation of web-2 in payments failed: the measurement matches no pin.",
    ]);
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run();
    await at.run();
    expect(at.texts()[1]).toMatch(/failed: the measurement matches no pin/);
    expect(at.said.size).toBe(2);
  });

  it("reports the end once, and the same failure again after that", async () => {
    await using at = await startDrift();
    await at.run();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: true });
    await at.run();
    await at.run();
    expect(at.texts()[1]).toBe("🟢 web-2 in payments: attestation no longer fails.");
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run();
    expect(at.said.size).toBe(3);
    const { id, name, projectId, projectName } = at.web2;
    const target = { kind: "vm", id, name, projectId, projectName };
    const failed = { what: "attestation", target, move: "failed" };
    expect(await at.recorded()).toEqual([
      expect.objectContaining(failed),
      { ...failed, move: "ended", why: "no longer fails" },
      expect.objectContaining(failed),
    ]);
  });

  it("reports once, with several processes at once, and when one dies before it has recorded it", async () => {
    await using at = await startDrift();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run([at.web2], 3);
    expect(at.said.size).toBe(1);
    await at.records.keepOnly(new Set());
    await at.run([at.web2], 1, true);
    await at.run();
    expect(at.said.size).toBe(1);
    expect(await at.recorded()).toHaveLength(1);
  });

  it("reports the same failure of a VM of which nothing is known any more on another day, and once a day", async () => {
    await using at = await startDrift();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    const failed = async () => {
      await at.records.keepOnly(new Set());
      await at.run();
      return at.said.size;
    };
    expect([await failed(), await failed()]).toEqual([1, 1]);
    at.passes(dayMs);
    expect([await failed(), await failed()]).toEqual([2, 2]);
  });

  it("forgets a VM that isn't pinned two days after its failure ended, so that the next is of another day", async () => {
    await using at = await startDrift();
    const moved = { ...at.web2, projectName: "other" };
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: true });
    await at.run([moved]);
    at.passes(2 * dayMs - 60_000);
    await at.run([moved]);
    expect(await at.known()).toHaveLength(1);
    at.passes(120_000);
    await at.run([moved]);
    expect(await at.known()).toEqual([]);
  });

  it("remembers when a VM was verified, until something else comes of judging it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-verified-"));
    await writeEndorsements(folder);
    await using at = await startDrift({ folder });
    expect(await at.records.verifiedAt(at.web2.id)).toBeUndefined();
    const before = Date.now();
    await at.run();
    expect(await at.records.verifiedAt(at.web2.id)).toBeGreaterThanOrEqual(before);
    at.service.edit.setVerified({ vm: at.web2.id, verified: false });
    await at.run();
    expect(await at.records.verifiedAt(at.web2.id)).toBeUndefined();
    await rm(folder, { recursive: true });
  });

  it("treats a VM that can't be verified neither as a failure nor as its end", async () => {
    await using at = await startDrift();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run();
    at.service.edit.setStatus({ vm: "vm-payments-web-2", status: "STOPPED" });
    await at.run();
    expect(at.said.size).toBe(1);
    expect((await at.known())[0]?.mark).not.toBe("");
    // One that isn't pinned any more is remembered while it fails, and two days longer, because the
    // same failure again is news again.
    const moved = { ...at.web2, projectName: "other" };
    at.service.edit.setStatus({ vm: "vm-payments-web-2", status: "RUNNING" });
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: true });
    await at.run([moved]);
    expect((await at.known()).map(({ mark }) => mark)).toEqual([""]);
    await at.run([moved]);
    expect(await at.known()).toHaveLength(1);
    await at.run([]);
    expect(await at.known()).toEqual([]);
  });
});

describe.concurrent("a failure that a request explains", () => {
  const resized = {
    record: { channelId: "C01OPS" },
    delivered: { marks: {} },
  } as unknown as StoredRequest;

  /** The VM measures something else than is pinned, and nothing else is wrong with it. */
  async function startChanged() {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-changed-"));
    await writeEndorsements(folder);
    const at = await startDrift({ folder });
    await at.run();
    at.explainedBy(resized);
    at.service.edit.changeBehindTheBack({ vm: at.web2.id, specs: { cpu: 8 } });
    return {
      ...at,
      markNow: async () => (await at.known())[0]?.mark ?? "",
      [Symbol.asyncDispose]: async () => {
        await at[Symbol.asyncDispose]();
        await rm(folder, { recursive: true });
      },
    };
  }
  const alarm = "🔴 Attestation of web-2 in payments failed: the measurement matches no pin.";

  it("waits for the request's result, and is no alarm once a channel shows that", async () => {
    await using at = await startChanged();
    await at.run();
    expect([at.texts(), at.waiting()]).toEqual([[], [alarm]]);
    await at.told(at.web2, await at.markNow());
    await at.timePasses();
    await at.run();
    expect(at.texts()).toEqual([]);
    // What no alarm told ends without one.
    at.explainedBy(undefined);
    at.service.edit.changeBehindTheBack({ vm: at.web2.id, specs: { cpu: 4 } });
    await at.run();
    expect(at.texts()).toEqual([]);
    expect((await at.known())[0]?.mark).toBe("");
  });

  it("is an alarm when no result tells it, also when the process dies right after it was owed", async () => {
    await using at = await startChanged();
    await at.run([at.web2], 1, true);
    await at.run();
    expect(at.waiting()).toEqual([alarm]);
    // The result told another failure, and another VM's.
    await at.told(at.web2, "another");
    await at.told({ id: "vm-other" }, await at.markNow());
    await at.timePasses();
    expect(at.texts()).toEqual([alarm]);
  });

  it("is an alarm at once where its end is seen first", async () => {
    await using at = await startChanged();
    await at.run();
    at.service.edit.changeBehindTheBack({ vm: at.web2.id, specs: { cpu: 4 } });
    await at.run();
    expect(at.texts()).toEqual([alarm, "🟢 web-2 in payments: attestation is verified again."]);
  });

  it("is an alarm at once where more than the measurement is wrong, whatever explains that", async () => {
    await using at = await startChanged();
    at.service.edit.setEvidence({ vm: at.web2.id, weather: "debugged" });
    await at.run();
    expect(at.texts()).toHaveLength(1);
    expect(at.waiting()).toEqual([]);
  });

  it("is an alarm at once where no request explains it", async () => {
    await using at = await startChanged();
    at.explainedBy(undefined);
    await at.run();
    expect([at.texts(), at.waiting()]).toEqual([[alarm], []]);
  });
});

describe.concurrent("a vendor's list that ran out", () => {
  it("is one alarm for all affected VMs, and one when it is over", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-lists-"));
    await writeEndorsements(folder, { ranOut: ["Turin"] });
    await using at = await startDrift({ folder });
    const names = ["a-1", "a-2", "a-3", "a-4"];
    const vms = names.map((name): KnownVm => {
      const id = at.service.edit.addVm({ project: "payments", name });
      at.service.edit.setMachine({ vm: id, image: "web-2 v1", platform: "Turin" });
      return { ...knownVm(name, "RUNNING", "payments"), id };
    });
    await at.run([at.web2, ...vms]);
    await at.run([at.web2, ...vms]);
    expect(at.texts()).toEqual([
      "❔ 4 pinned VMs can't be verified: AMD's revocation list for Turin has expired.",
    ]);
    // A failure doesn't end while nothing can be read.
    at.service.weather({ match: "GET /v1/vms/:id/attestation", status: 503 });
    await at.run([at.web2, ...vms]);
    at.service.clear();
    await writeEndorsements(folder);
    await at.run([at.web2, ...vms]);
    expect(at.texts().slice(1)).toEqual([
      "🟢 Resolved for all pinned VMs: AMD's revocation list for Turin has expired.",
    ]);
    expect((await at.known()).flatMap(({ lacks }) => lacks)).toEqual([]);
    await rm(folder, { recursive: true });
  });
});

describe.concurrent("Intel's next level", () => {
  it("is known before it counts: which VMs will fail is for the digest, and no alarm", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-next-"));
    await writeEndorsements(folder, { nextLevel: true });
    await using at = await startDrift({ folder });
    at.service.edit.setMachine({ vm: "vm-payments-web-2", platform: "TDX" });
    await at.run();
    expect(at.texts()).toEqual([]);
    const [next, ...more] = lackingIn(await at.known()).values();
    expect(more).toEqual([]);
    expect(next).toMatchObject({ isNextLevel: true, vms: [{ name: "web-2" }] });
    expect(next?.what).toMatch(/^Intel calls the platform OutOfDate, at its level of 2024-11-13/);
    await rm(folder, { recursive: true });
  });
});
