import { sentFor } from "../support/sent-for.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { createCompute } from "../../src/compute/create-compute.ts";
import { createDriftRecords, lackingIn } from "../../src/monitor/drift-records.ts";
import { createStatusRecords } from "../../src/monitor/status-records.ts";
import type { InventoryState, KnownVm } from "../../src/inventory/inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import type { Message } from "../../src/messages/message.ts";
import { driftProbe, rememberVerdicts } from "../../src/monitor/drift-probe.ts";
import { runProbe } from "../../src/monitor/monitor.ts";
import { statusProbe } from "../../src/monitor/status-probe.ts";
import { startSandboxCompute } from "../../sandbox/compute/start-sandbox-compute.ts";
import { sandboxAppraiser } from "../support/appraiser.ts";
import { testRedis } from "../support/with-redis.ts";
import { running } from "../support/known-vm.ts";

/** What was told, once per id, as the announcer does it. */
function teller() {
  const said = new Map<string, Message>();
  return {
    said,
    texts: () => [...said.values()].map(({ text }) => text),
    follow: async () => undefined,
    alarms: {
      placeOf: () => "access",
      async tell(id: string, message: Message) {
        if (!said.has(id)) said.set(id, message);
        return "C02STATUS";
      },
    },
  };
}

async function startDrift({ folder }: { folder?: string } = {}) {
  const redis = await testRedis();
  const service = await startSandboxCompute();
  const log = silentLog();
  const compute = createCompute({ baseUrl: service.url, apiKey: service.apiKey, timeoutMs: 2000 });
  const records = createDriftRecords(redis.redis, redis.key);
  const known = async () => [...(await records.readRecords()).values()];
  const { said, texts, ...telling } = teller();
  const { attestation } = await compute.vms.get("vm-payments-web-2");
  const pins = [{ targets: ["payments/*"], measurements: [attestation?.measurement ?? ""] }];
  const policy = emptyPolicy();
  const judged = { ...policy, attestation: { ...policy.attestation, pins, endorsements: folder } };
  const web2: KnownVm = { ...running("web-2", "RUNNING", "payments"), id: "vm-payments-web-2" };
  const dead = { ...records, writeRecords: () => Promise.reject(new Error("killed")) };
  const remembering = (vms: readonly KnownVm[], kept: typeof records) =>
    rememberVerdicts(sandboxAppraiser({ compute, policy: judged, ...redis }), {
      inventory: {
        async findVm(id) {
          const found = vms.find((vm) => vm.id === id);
          return found ? { found } : { unknown: [] };
        },
      },
      records: kept,
      ...telling,
      log,
      now: Date.now,
    });
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
            now: Date.now,
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
    web2,
    redis,
    [Symbol.asyncDispose]: async () => {
      await compute.close();
      await service.close();
      await redis[Symbol.asyncDispose]();
    },
  };
}

describe("watching pinned VMs for drift", () => {
  it("tells a mismatch once, again when it changes, and once that it is over", async () => {
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

  it("tells that it is over once, and the same failure anew after that", async () => {
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
  });

  it("is told once, also by several processes at once, and when one dies before it has remembered", async () => {
    await using at = await startDrift();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run([at.web2], 3);
    expect(at.said.size).toBe(1);
    await at.records.keepOnly(new Set());
    await at.run([at.web2], 1, true);
    await at.run();
    expect(at.said.size).toBe(1);
  });

  it("takes what can't be verified neither for a failure nor for its end", async () => {
    await using at = await startDrift();
    at.service.edit.setVerified({ vm: "vm-payments-web-2", verified: false });
    await at.run();
    at.service.edit.setStatus({ vm: "vm-payments-web-2", status: "STOPPED" });
    await at.run();
    expect(at.said.size).toBe(1);
    expect((await at.known())[0]?.mark).not.toBe("");
    await at.run([]);
    expect(await at.known()).toEqual([]);
  });
});

async function startStatuses(touched: (id: string) => boolean = () => false) {
  const redis = await testRedis();
  const records = createStatusRecords(redis.redis, redis.key);
  const { said, texts, ...telling } = teller();
  let looks = 0;
  const lookAt = async (vms: readonly KnownVm[], state: Partial<InventoryState> = {}) => {
    const options = {
      redis: redis.redis,
      key: redis.key,
      ...telling,
      records,
      readEveryMs: 60_000,
      now: Date.now,
      store: sentFor(touched),
      inventory: {
        vms: async () => vms,
        state: async () => ({
          refreshedAt: Date.now(),
          version: ++looks,
          stale: false,
          vms: 0,
          projects: 0,
          unread: [],
          ...state,
        }),
      },
    };
    await Promise.all([1, 2, 3].map(() => runProbe(statusProbe(options))));
  };
  return {
    look: lookAt,
    said,
    texts,
    records,
    redis,
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

describe("a vendor's list that ran out", () => {
  it("is one alarm for all VMs that hang on it, and one when it is over", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-lists-"));
    await writeEndorsements(folder, { ranOut: ["Turin"] });
    await using at = await startDrift({ folder });
    const names = ["a-1", "a-2", "a-3", "a-4"];
    const vms = names.map((name): KnownVm => {
      const id = at.service.edit.addVm({ project: "payments", name });
      at.service.edit.setMachine({ vm: id, image: "web-2 v1", platform: "Turin" });
      return { ...running(name, "RUNNING", "payments"), id };
    });
    await at.run([at.web2, ...vms]);
    await at.run([at.web2, ...vms]);
    expect(at.texts()).toEqual([
      "❔ 4 pinned VMs can't be verified: AMD's revocation list of Turin has expired.",
    ]);
    // While nothing can be read, nothing is over
    at.service.weather({ match: "GET /v1/vms/:id/attestation", status: 503 });
    await at.run([at.web2, ...vms]);
    at.service.clear();
    await writeEndorsements(folder);
    await at.run([at.web2, ...vms]);
    expect(at.texts().slice(1)).toEqual([
      "🟢 Resolved for all pinned VMs: AMD's revocation list of Turin has expired.",
    ]);
    expect((await at.known()).flatMap(({ lacks }) => lacks)).toEqual([]);
    await rm(folder, { recursive: true });
  });
});

describe("Intel's next level", () => {
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

describe("VMs that change without being asked to", () => {
  it("are not told of while their status can't be read, nor for how it was before that", async () => {
    await using at = await startStatuses();
    const run = (...all: [string, string][]) =>
      at.look(all.map(([name, status]) => running(name, status)));
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "RUNNING"]);
    await run(["off", "UNREADABLE"], ["bad", "UNREADABLE"], ["ok", "UNREADABLE"]);
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "UNREADABLE"], ["new", "UNREADABLE"]);
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "UNREADABLE"], ["new", "STOPPED"]);
    expect(at.texts()).toEqual([]);
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "STOPPED"], ["new", "STOPPED"]);
    expect(at.texts()).toEqual(["⚪ ok in shop stopped, was RUNNING."]);
  });

  it("are told once when they go to ERROR or stop, whatever the number of processes", async () => {
    await using at = await startStatuses();
    await at.look([running("web-1"), running("old", "ERROR")]);
    expect(at.texts()).toEqual([]); // as it was found
    await at.look([running("web-1", "ERROR"), running("old", "ERROR")]);
    await at.look([running("web-1", "ERROR"), running("old", "ERROR")]);
    expect(at.texts()).toEqual(["🔴 web-1 in shop went to ERROR, was RUNNING."]);
    await at.look([running("web-1"), running("old", "STOPPED")]);
    expect(at.texts()[1]).toBe("⚪ old in shop stopped, was ERROR.");
    await at.look([running("web-1", "ERROR"), running("old", "STOPPED")]);
    expect(at.said.size).toBe(3);
  });

  it("are told though a process whose clock was hours ahead had read the list", async () => {
    await using at = await startStatuses();
    await at.look([running("web-1")], { refreshedAt: Date.now() + 3 * 3_600_000 });
    await at.look([running("web-1", "ERROR")]);
    expect(at.texts()).toEqual(["🔴 web-1 in shop went to ERROR, was RUNNING."]);
    // A process with an older copy of the list tells nothing
    await at.look([running("web-1", "STOPPED")], { version: 1 });
    expect(at.texts()).toHaveLength(1);
  });

  it("are not told when a request of ours did it, is new, or the service is away", async () => {
    await using at = await startStatuses((id) => id === "vm-asked");
    await at.look([running("asked"), running("web-1")]);
    await at.look([running("asked", "STOPPED"), running("web-1"), running("new", "STOPPED")]);
    await at.look([running("web-1", "ERROR")], { stale: true });
    expect(at.texts()).toEqual([]);
  });

  it("are told together, in one message, when there are many", async () => {
    await using at = await startStatuses();
    const many = Array.from({ length: 40 }, (_, n) => `web-${n}`);
    await at.look(many.map((name) => running(name)));
    await at.look(many.map((name) => running(name, "ERROR")));
    expect(at.texts()).toEqual(["40 VMs changed without a request to Gatehouse:"]);
    const [told] = [...at.said.values()];
    expect(told?.blocks.length).toBeLessThanOrEqual(50);
    expect(JSON.stringify(told)).toContain("and 30 more");
  });

  it("are remembered with the time, and forgotten with their project", async () => {
    await using at = await startStatuses();
    await at.look([running("web-1", "ERROR")]);
    const since = await at.records.since([running("web-1", "ERROR"), running("web-2")]);
    expect([...since.keys()]).toEqual(["vm-web-1"]);
    await at.look([running("db-1", "RUNNING", "other")]);
    expect(await at.records.since([running("web-1", "ERROR")])).toEqual(new Map());
  });
});
