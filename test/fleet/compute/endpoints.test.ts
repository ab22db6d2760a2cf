import { expect, it } from "vitest";
import { endpoints, type Compute } from "../../../src/fleet/compute/compute.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { clientOf } from "./answering.ts";

const web = "vm-payments-web-1";

type Row = [
  call: (compute: Compute, made: { snapshot: string }) => Promise<unknown>,
  sent: string,
  body?: unknown,
];

/** In an order in which each call is possible. */
const rows: Record<keyof typeof endpoints, Row> = {
  listProjects: [(compute) => compute.projects.listAll(), "GET /v1/projects?page=1&per_page=100"],
  getProject: [(compute) => compute.projects.get("prj-payments"), "GET /v1/projects/prj-payments"],
  listVms: [(compute) => compute.projects.vms("prj-payments"), "GET /v1/projects/prj-payments/vms"],
  getVm: [(compute) => compute.vms.get(web), `GET /v1/vms/${web}`],
  vmMetrics: [
    (compute) => compute.vms.metrics(web, "15 m&x"),
    `GET /v1/vms/${web}/metrics?period=15+m%26x`,
  ],
  vmAttestation: [(compute) => compute.vms.attestation(web), `GET /v1/vms/${web}/attestation`],
  openConsole: [(compute) => compute.vms.console(web), `POST /v1/vms/${web}/console`],
  takeSnapshot: [
    async (compute, made) => {
      const taken = await compute.vms.snapshot(web, "nightly");
      made.snapshot = taken.snapshotId ?? "none";
      return taken;
    },
    `POST /v1/vms/${web}/snapshots`,
    { name: "nightly" },
  ],
  restoreVm: [
    (compute, made) => compute.vms.restore(web, made.snapshot),
    `POST /v1/vms/${web}/restore`,
    { snapshot_id: expect.stringMatching(/^snap-/) as unknown },
  ],
  restartVm: [
    (compute) => compute.vms.restart("vm-payments-web-2"),
    "POST /v1/vms/vm-payments-web-2/restart",
  ],
  resizeVm: [
    (compute) => compute.vms.resize("vm-payments-db-1", { cpu: 8, memory: 32 }),
    "PATCH /v1/vms/vm-payments-db-1",
    { specs: { cpu: 8, memory: 32 } },
  ],
  startVm: [(compute) => compute.vms.start("vm-ml-gpu-1"), "POST /v1/vms/vm-ml-gpu-1/start"],
  stopVm: [(compute) => compute.vms.stop("vm-staging-web-1"), "POST /v1/vms/vm-staging-web-1/stop"],
  createProject: [
    (compute) =>
      compute.projects.create({
        name: "blog",
        type: "GIT_DEPLOY",
        region: "eu-west-1",
        gitConfig: {
          url: "https://git.example/blog.git",
          branch: "main",
          buildCommand: "make",
          startCommand: "./run",
        },
      }),
    "POST /v1/projects",
    {
      name: "blog",
      type: "GIT_DEPLOY",
      region: "eu-west-1",
      git_config: {
        url: "https://git.example/blog.git",
        branch: "main",
        build_command: "make",
        start_command: "./run",
      },
    },
  ],
  updateProject: [
    (compute) => compute.projects.update("prj-edge-cache", { name: "edge" }),
    "PATCH /v1/projects/prj-edge-cache",
    { name: "edge" },
  ],
  deleteProject: [
    (compute) => compute.projects.delete("prj-docs-site"),
    "DELETE /v1/projects/prj-docs-site",
  ],
};

it("reaches all endpoints with the documented method, path and body", async () => {
  await using sandbox = await startSandboxCompute({ transitionMs: 5 });
  await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
  const made = { snapshot: "" };
  for (const [name, [call, sent, body]] of Object.entries(rows)) {
    sandbox.forget();
    await call(compute, made);
    expect(sandbox.calls(), name).toHaveLength(1);
    const seen = sandbox.calls()[0];
    expect(`${seen?.method} ${seen?.path}${seen?.query ? `?${seen.query}` : ""}`).toBe(sent);
    expect(seen?.body).toEqual(body);
    expect(seen?.answer).toBeOneOf([200, 201, 202, 204]);
  }
});

it("turns records into the contract's names", async () => {
  await using sandbox = await startSandboxCompute({ transitionMs: 5, withUpdatedAt: true });
  await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
  const truth = sandbox.vm(web);
  expect(await compute.vms.get(web)).toEqual({
    id: web,
    projectId: "prj-payments",
    name: "web-1",
    status: "RUNNING",
    region: "eu-west-1",
    specs: { cpu: 4, memory: 16, disk: 100 },
    ipAddress: expect.stringMatching(/^10\./) as unknown,
    createdAt: new Date(truth.bootedAt).toISOString(),
    updatedAt: new Date(truth.bootedAt).toISOString(),
    attestation: { enabled: true, measurement: truth.measurement },
  });
  expect((await compute.projects.listAll())[0]).toMatchObject({ id: "prj-payments" });
  expect(await compute.vms.attestation(web)).toMatchObject({
    verified: true,
    measurement: truth.measurement,
    platform: { firmwareVersion: expect.any(String) as unknown },
  });
  const metrics = await compute.vms.metrics(web, "1h");
  expect(metrics.cpuUsage).toHaveLength(60);
  expect(metrics.diskUsage).toBeTypeOf("number");
  expect(await compute.vms.console(web)).toMatchObject({
    url: expect.stringMatching(/^wss:.*token=/) as unknown,
    expiresAt: expect.any(String) as unknown,
  });
});
