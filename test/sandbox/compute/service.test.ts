import { describe, expect, it } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { call } from "./calling.ts";

const web = "/v1/vms/vm-payments-web-1";
const quick = { transitionMs: 150 };

describe("the sandbox's VMs", () => {
  it("start only from STOPPED, stop only from RUNNING, and take their time", async () => {
    await using sandbox = await startSandboxCompute(quick);
    expect((await call(sandbox, `POST ${web}/start`)).status).toBe(409);
    expect((await call(sandbox, `POST ${web}/stop`)).status).toBe(202);
    expect(sandbox.vm("payments/web-1")).toMatchObject({ status: "RUNNING", stops: 1 });
    expect((await call(sandbox, `POST ${web}/stop`)).status).toBe(409);
    await sandbox.settled();
    expect((await call(sandbox, `POST ${web}/stop`)).status).toBe(409);
    expect((await call(sandbox, `POST ${web}/restart`)).status).toBe(409);
    expect((await call(sandbox, `POST ${web}/start`)).body["status"]).toBe("CREATING");
    await sandbox.settled();
    expect(sandbox.vm("payments/web-1")).toMatchObject({
      status: "RUNNING",
      starts: 1,
      stops: 1,
      restarts: 0,
      bootCount: 2,
    });
  });

  it("restart through REBOOTING, with new evidence of attestation", async () => {
    await using sandbox = await startSandboxCompute(quick);
    const before = (await call(sandbox, `GET ${web}/attestation`)).body;
    expect((await call(sandbox, `POST ${web}/restart`)).body["status"]).toBe("REBOOTING");
    expect((await call(sandbox, `GET ${web}/attestation`)).status).toBe(409);
    await sandbox.settled();
    const after = (await call(sandbox, `GET ${web}/attestation`)).body;
    expect(Date.parse(String(after["timestamp"]))).toBeGreaterThan(
      Date.parse(String(before["timestamp"])),
    );
    expect(after).toMatchObject({ verified: true, measurement: before["measurement"] });
    const blob = Buffer.from(String(after["report"]), "base64");
    expect(blob.subarray(0x90, 0x90 + 48).toString("hex")).toBe(after["measurement"]);
  });

  it("are resized after a reboot, and stay stopped if they were", async () => {
    await using sandbox = await startSandboxCompute(quick);
    expect(
      (await call(sandbox, `PATCH ${web}`, { specs: { cpu: 8, memory: 32 } })).body,
    ).toMatchObject({ status: "REBOOTING", specs: { cpu: 4 } });
    await call(sandbox, "PATCH /v1/vms/vm-ml-gpu-1", { specs: { cpu: 2 } });
    await sandbox.settled();
    expect(sandbox.vm("payments/web-1")).toMatchObject({
      status: "RUNNING",
      specs: { cpu: 8, memory: 32, disk: 100 },
      resizes: 1,
    });
    expect(sandbox.vm("gpu-1")).toMatchObject({ status: "STOPPED", specs: { cpu: 2, memory: 64 } });
  });

  it("are brought back by a snapshot as they were: specs, disk and measurement", async () => {
    await using sandbox = await startSandboxCompute(quick);
    const before = sandbox.vm("payments/web-1");
    const taken = await call(sandbox, `POST ${web}/snapshots`, { name: "nightly" });
    expect(taken).toMatchObject({
      status: 201,
      body: { name: "nightly", vm_id: "vm-payments-web-1" },
    });
    sandbox.edit.writeDisk({ vm: "payments/web-1", content: "broken" });
    sandbox.edit.setMeasurement({ vm: "payments/web-1" });
    sandbox.edit.changeBehindTheBack({ vm: "payments/web-1", specs: { cpu: 1 } });
    expect(
      (
        await call(sandbox, `POST ${web}/restore`, {
          snapshot_id: taken.body["snapshot_id"],
        })
      ).status,
    ).toBe(202);
    await sandbox.settled();
    expect(sandbox.vm("payments/web-1")).toMatchObject({
      content: before.content,
      measurement: before.measurement,
      specs: before.specs,
      restores: 1,
      snapshots: 1,
    });
    const other = await call(sandbox, "POST /v1/vms/vm-payments-web-2/restore", {
      snapshot_id: taken.body["snapshot_id"],
    });
    expect(other.status).toBe(422);
  });

  it("have consoles for a while, over secure WebSocket", async () => {
    await using sandbox = await startSandboxCompute({ ...quick, consoleMs: 60_000 });
    const { body } = await call(sandbox, `POST ${web}/console`);
    expect(body["url"]).toMatch(/^wss:\/\/console\.sandbox\.example\/.*\?token=.{20,}$/);
    expect(Date.parse(String(body["expires_at"])) - Date.now()).toBeGreaterThan(55_000);
    expect((await call(sandbox, "POST /v1/vms/vm-ml-gpu-1/console")).status).toBe(409);
  });

  it("have the same metrics for the same minute, whatever the period is called", async () => {
    await using sandbox = await startSandboxCompute(quick);
    const hour = (await call(sandbox, `GET ${web}/metrics?period=24h`)).body;
    expect(hour["cpu_usage"]).toHaveLength(60);
    expect((await call(sandbox, `GET ${web}/metrics?period=24h`)).body).toEqual(hour);
    for (const period of ["15m", "7d", "a while", ""]) {
      expect(
        (await call(sandbox, `GET ${web}/metrics?period=${encodeURIComponent(period)}`)).body[
          "memory_usage"
        ],
      ).toHaveLength(60);
    }
  });
});

describe("the sandbox's projects", () => {
  const created = {
    name: "shop",
    type: "TEE_VM",
    region: "eu-west-1",
    specs: { cpu: 2, memory: 8, disk: 50 },
  };

  it("are created with one VM, renamed, resized and deleted with everything in them", async () => {
    await using sandbox = await startSandboxCompute(quick);
    const answer = await call(sandbox, "POST /v1/projects", created);
    expect(answer).toMatchObject({ status: 201, body: { status: "CREATING", name: "shop" } });
    await sandbox.settled();
    const id = String(answer.body["id"]);
    expect(sandbox.project("shop")).toMatchObject({
      status: "ACTIVE",
      creations: 1,
      vmIds: [expect.any(String) as unknown],
    });
    expect(sandbox.vm("shop-1")).toMatchObject({ status: "RUNNING", specs: created.specs });
    expect(
      (await call(sandbox, `PATCH /v1/projects/${id}`, { name: "store", specs: { cpu: 4 } }))
        .status,
    ).toBe(200);
    expect(sandbox.vm("shop-1").status).toBe("REBOOTING");
    await sandbox.settled();
    expect(sandbox.vm("store/shop-1").specs.cpu).toBe(4);
    expect((await call(sandbox, `DELETE /v1/projects/${id}`)).status).toBe(204);
    expect((await call(sandbox, `GET /v1/projects/${id}`)).body["status"]).toBe("DELETING");
    expect((await call(sandbox, `DELETE /v1/projects/${id}`)).status).toBe(409);
    await sandbox.settled();
    expect((await call(sandbox, `GET /v1/projects/${id}`)).status).toBe(404);
    expect(sandbox.truth({ touched: true }).projects[id]).toMatchObject({
      gone: true,
      creations: 1,
      updates: 1,
      deletions: 1,
    });
  });

  it("are listed by page, type and status", async () => {
    await using sandbox = await startSandboxCompute({ ...quick, perPage: 2, mostPerPage: 3 });
    expect((await call(sandbox, "GET /v1/projects")).body).toMatchObject({
      total: 6,
      page: 1,
      per_page: 2,
      projects: [{ name: "payments" }, { name: "vault" }],
    });
    expect((await call(sandbox, "GET /v1/projects?page=2&per_page=100")).body).toMatchObject({
      per_page: 3,
      projects: [{}, {}, {}],
    });
    expect((await call(sandbox, "GET /v1/projects?type=CONTAINER")).body).toMatchObject({
      total: 1,
      projects: [{ name: "edge-cache" }],
    });
    expect((await call(sandbox, "GET /v1/projects?status=ERROR")).body).toMatchObject({
      total: 0,
      projects: [],
    });
    expect((await call(sandbox, "GET /v1/projects?page=0")).status).toBe(422);
    expect((await call(sandbox, "GET /v1/projects?type=VM")).status).toBe(422);
  });
});
