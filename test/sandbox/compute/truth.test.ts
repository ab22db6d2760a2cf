import { describe, expect, it } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { call } from "./calling.ts";

const web = "/v1/vms/vm-payments-web-1";
const quick = { transitionMs: 150 };

describe("the sandbox refuses", () => {
  it.each([
    ["a missing key", "GET /v1/projects", undefined, { authorization: "" }, 401],
    ["a wrong key", "GET /v1/projects", undefined, { authorization: "Bearer nope" }, 401],
    ["an unknown path", "GET /v2/projects", undefined, {}, 404],
    ["an unknown VM", "GET /v1/vms/vm-9", undefined, {}, 404],
    ["another method", "PUT /v1/projects", undefined, {}, 405],
    ["another content type", `PATCH ${web}`, "specs=1", { "content-type": "text/plain" }, 415],
    ["what is not JSON", `PATCH ${web}`, "{specs", {}, 400],
    [
      "a body that is too large",
      `PATCH ${web}`,
      JSON.stringify({ x: "x".repeat(2_000_000) }),
      {},
      413,
    ],
    ["no specs", `PATCH ${web}`, {}, {}, 422],
    ["half a CPU", `PATCH ${web}`, { specs: { cpu: 0.5 } }, {}, 422],
    ["a text for a number", `PATCH ${web}`, { specs: { cpu: "8" } }, {}, 422],
    ["a snapshot without a name", `POST ${web}/snapshots`, { name: " " }, {}, 422],
    ["an unknown snapshot", `POST ${web}/restore`, { snapshot_id: "snap-9" }, {}, 422],
    ["an unknown type", "POST /v1/projects", { name: "a", type: "VM", region: "eu" }, {}, 422],
    [
      "a TEE_VM without specs",
      "POST /v1/projects",
      { name: "a", type: "TEE_VM", region: "eu" },
      {},
      422,
    ],
    [
      "a GIT_DEPLOY without a repository",
      "POST /v1/projects",
      { name: "a", type: "GIT_DEPLOY", region: "eu" },
      {},
      422,
    ],
    ["an update of nothing", "PATCH /v1/projects/prj-vault", {}, {}, 422],
  ])("%s", async (_, what, body, headers, status) => {
    await using sandbox = await startSandboxCompute(quick);
    const answer = await call(sandbox, what, body, headers);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({
      error: { code: expect.any(String) as unknown, message: expect.any(String) as unknown },
    });
    expect(sandbox.truth({ touched: true })).toEqual({ vms: {}, projects: {}, snapshots: {} });
    expect(sandbox.calls()).toMatchObject([{ effect: false, answer: status }]);
  });
});

describe("the ground truth", () => {
  it("tells each call with its body, answer and whether it had an effect, and never the key", async () => {
    await using sandbox = await startSandboxCompute(quick);
    await call(sandbox, `PATCH ${web}`, { specs: { cpu: 8 } });
    await call(sandbox, `POST ${web}/stop`);
    await call(sandbox, "GET /v1/projects?page=1");
    expect(sandbox.calls()).toMatchObject([
      {
        n: 1,
        method: "PATCH",
        path: web,
        route: "/v1/vms/{vm_id}",
        body: { specs: { cpu: 8 } },
        effect: true,
        answer: 200,
      },
      { n: 2, method: "POST", path: `${web}/stop`, effect: false, answer: 409 },
      { n: 3, method: "GET", path: "/v1/projects", query: "page=1", effect: false, answer: 200 },
    ]);
    expect(sandbox.writes()).toHaveLength(2);
    expect(JSON.stringify(sandbox.calls())).not.toContain(sandbox.apiKey);
    sandbox.forget();
    expect(sandbox.calls()).toEqual([]);
    expect(sandbox.vm("payments/web-1").resizes).toBe(1);
  });

  it("asks back when a name is ambiguous", async () => {
    await using sandbox = await startSandboxCompute(quick);
    expect(() => sandbox.vm("web-1")).toThrow(/several/);
    expect(sandbox.vm("staging/web-1").id).toBe("vm-staging-web-1");
    expect(() => sandbox.vm("web-9")).toThrow(/no VM/);
  });
});

describe("somebody else", () => {
  it("renames, replaces, adds, removes and tampers without an effect being counted", async () => {
    await using sandbox = await startSandboxCompute(quick);
    const { edit } = sandbox;
    edit.renameVm({ vm: "db-1", name: "db-2" });
    const replaced = edit.replaceVm({ vm: "vault-1" });
    expect(replaced).not.toBe("vm-vault-vault-1");
    expect(sandbox.vm("vault-1").id).toBe(replaced);
    edit.addVm({ project: edit.addProject({ name: "late" }), name: "late-1" });
    edit.removeVm({ vm: "gpu-1" });
    edit.removeProject({ project: "staging" });
    edit.setStatus({ vm: "web-2", status: "MIGRATING" });
    edit.setProjectStatus({ project: "ml", status: "ERROR" });
    edit.setVerified({ vm: "db-2", verified: false });
    const { measurement } = sandbox.vm("db-2");
    const drifted = edit.setMeasurement({ vm: "db-2", reportOnly: true });
    expect((await call(sandbox, "GET /v1/vms/vm-payments-db-1")).body).toMatchObject({
      name: "db-2",
      attestation: { measurement },
    });
    expect((await call(sandbox, "GET /v1/vms/vm-payments-db-1/attestation")).body).toMatchObject({
      measurement: drifted,
      verified: false,
    });
    expect((await call(sandbox, "GET /v1/vms/vm-staging-web-1")).status).toBe(404);
    expect((await call(sandbox, "GET /v1/vms/vm-payments-web-2")).body["status"]).toBe("MIGRATING");
    expect(sandbox.truth({ touched: true })).toEqual({ vms: {}, projects: {}, snapshots: {} });
  });
});

describe("a fleet", () => {
  it("is served page by page and project by project", async () => {
    await using sandbox = await startSandboxCompute({
      world: { projects: 500, vmsPerProject: 20 },
    });
    expect((await call(sandbox, "GET /v1/projects?per_page=100&page=5")).body).toMatchObject({
      total: 500,
      projects: { length: 100 },
    });
    expect((await call(sandbox, "GET /v1/projects/prj-0499/vms")).body["vms"]).toHaveLength(20);
  });
});
