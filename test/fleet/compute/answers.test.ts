import { describe, expect, it } from "vitest";
import type { Accepted, Compute } from "../../../src/fleet/compute/compute.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import type { AnswerShape } from "../../../sandbox/compute/weather.ts";
import { answering, clientOf, failureOf, says, vmRecord } from "./answering.ts";

const web = "vm-payments-web-1";
const specs = { cpu: 2, memory: 8, disk: 50 };

const changes: Record<string, (compute: Compute) => Promise<Accepted>> = {
  create: (compute) =>
    compute.projects.create({ name: "new", type: "TEE_VM", region: "eu-west-1", specs }),
  update: (compute) => compute.projects.update("prj-payments", { name: "money" }),
  delete: (compute) => compute.projects.delete("prj-payments"),
  start: (compute) => compute.vms.start("vm-ml-gpu-1"),
  stop: (compute) => compute.vms.stop(web),
  restart: (compute) => compute.vms.restart(web),
  resize: (compute) => compute.vms.resize(web, specs),
  snapshot: (compute) => compute.vms.snapshot(web, "nightly"),
  restore: async (compute) => {
    const taken = await compute.vms.snapshot(web, "before");
    return compute.vms.restore(web, taken.snapshotId ?? "");
  },
};

const shapes: [AnswerShape, status: number][] = [
  ["record", 200],
  ["wrapped", 201],
  ["data", 200],
  ["task", 202],
  ["empty", 204],
  ["text", 200],
];

describe.each(shapes)("an accepted change answered with %s (%i)", (answer, status) => {
  it.each(Object.keys(changes))(
    "%s is accepted, with the record when there is one",
    async (name) => {
      await using sandbox = await startSandboxCompute({ transitionMs: 5 });
      await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
      // The snapshot that a restore needs is answered as usual.
      sandbox.weather({ match: "writes", answer, skip: name === "restore" ? 1 : 0 });
      const accepted = await changes[name]!(compute);
      expect(accepted.status).toBe(status);
      const record = accepted.vm ?? accepted.project ?? accepted.snapshotId;
      const bears = answer === "record" || answer === "wrapped" || answer === "data";
      expect(record !== undefined).toBe(bears);
    },
  );
});

describe("what an accepted snapshot tells", () => {
  const at = "2026-11-20T10:00:00Z";
  const bodies: [what: string, body: unknown, status: number, id: string | undefined][] = [
    ["snapshot_id", { snapshot_id: "s-1", name: "n" }, 201, "s-1"],
    ["snapshotId", { snapshotId: "s-1" }, 200, "s-1"],
    [
      "an id beside the name asked for",
      { id: "s-1", name: "nightly", status: "CREATING" },
      202,
      "s-1",
    ],
    ["a bare id, created", { id: "s-1", created_at: at }, 201, "s-1"],
    ["a snapshot object", { snapshot: { id: "s-1" } }, 200, "s-1"],
    ["a snapshot text", { snapshot: "s-1" }, 200, "s-1"],
    ["data around it", { data: { snapshot_id: "s-1" } }, 200, "s-1"],
    ["data around a snapshot", { data: { snapshot: { id: 17 } } }, 200, "17"],
    ["a task", { id: "task-1", type: "task", status: "PENDING" }, 202, undefined],
    ["a task with 200", { id: "t-1", type: "snapshot_task" }, 200, undefined],
    ["the VM", { ...vmRecord }, 200, undefined],
    ["another VM-like record", { ...vmRecord, id: "vm-2" }, 200, undefined],
    ["only a name", { name: "nightly" }, 201, undefined],
    ["nothing", null, 200, undefined],
  ];

  it.each(bodies)("%s", async (_, body, status, id) => {
    await using server = await answering(says(body, status));
    await using compute = clientOf(server.url);
    expect((await compute.vms.snapshot("vm-1", "nightly")).snapshotId).toBe(id);
  });
});

describe("records in accepted answers", () => {
  it("are taken only for what was asked about: a task looks much like a record", async () => {
    await using server = await answering(
      says({ id: "task-9", project_id: "prj-1", type: "TEE_VM", status: "PENDING" }, 202),
    );
    await using compute = clientOf(server.url);
    expect(await compute.vms.restart("vm-1")).toEqual({ status: 202 });
    expect(await compute.projects.delete("prj-1")).toEqual({ status: 202 });
    expect(await compute.projects.create({ name: "new", type: "TEE_VM", region: "eu" })).toEqual({
      status: 202,
    });
  });

  it("are left out when they are broken, because the change was accepted all the same", async () => {
    await using server = await answering(says({ vm: { id: "vm-1", status: 5 } }));
    await using compute = clientOf(server.url);
    expect(await compute.vms.restart("vm-1")).toEqual({ status: 200 });
  });
});

describe("a console session", () => {
  const ok = { url: "wss://console.example/x?token=t0k3n", expires_at: "2026-11-20T10:00:00Z" };

  it.each([
    ["as it is", ok],
    ["under console", { console: ok }],
    ["under data", { data: ok }],
  ])("is found %s", async (_, body) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await compute.vms.console("vm-1")).toEqual({ url: ok.url, expiresAt: ok.expires_at });
  });

  it.each([
    ["ws://console.example/?token=t0k3n"],
    ["https://console.example/?token=t0k3n"],
    ["javascript:t0k3n"],
    [7],
    [null],
  ])("is refused with the address %s, which no error repeats", async (url) => {
    await using server = await answering(says({ ...ok, url }));
    await using compute = clientOf(server.url);
    const error = await failureOf(compute.vms.console("vm-1"));
    expect(error).toMatchObject({ kind: "unexpected", endpoint: "POST /v1/vms/{vm_id}/console" });
    expect(error.message).toMatch(/: url (has the wrong form|is missing)$/);
    expect(error.message).not.toContain("t0k3n");
    expect(server.asked).toHaveLength(1);
  });
});
