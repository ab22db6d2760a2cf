import { describe, expect, it } from "vitest";
import { startSandboxCompute } from "../../sandbox/compute/start-sandbox-compute.ts";
import type { ListShape } from "../../sandbox/compute/weather.ts";
import {
  answering,
  clientOf,
  failureOf,
  projectRecord,
  says,
  vmRecord,
  logTo,
} from "./answering.ts";

describe("the list of a project's VMs", () => {
  const shapes: [ListShape, calls: number][] = [
    ["array", 1],
    ["wrapped", 1],
    ["data", 1],
    ["items", 1],
    ["paged", 3],
    ["paged-without-total", 4],
  ];

  it.each(shapes)("is read whole as %s, in %i calls", async (list, calls) => {
    await using sandbox = await startSandboxCompute({
      world: { projects: 1, vmsPerProject: 25 },
      perPage: 10,
    });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ list, mostPerPage: 10 });
    const vms = await compute.projects.vms("prj-0000");
    expect(vms.map((vm) => vm.id)).toEqual(sandbox.project("prj-0000").vmIds);
    expect(sandbox.calls()).toHaveLength(calls);
  });

  it.each([
    ["an empty array", []],
    ["null for none", { vms: null }],
    ["no VMs, paged", { vms: [], total: 0, page: 1 }],
  ])("is empty with %s", async (_, body) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await compute.projects.vms("prj-1")).toEqual([]);
  });

  it.each([["null"], ["{}"], ['{"vms": "none"}'], ["7"]])(
    "that is %s is unexpected",
    async (text) => {
      await using server = await answering((_, response) =>
        response.writeHead(200, { "content-type": "application/json" }).end(text),
      );
      await using compute = clientOf(server.url);
      expect((await failureOf(compute.projects.vms("prj-1"))).message).toMatch(/vms is missing$/);
    },
  );

  it("gives a VM the project it was asked for when the record has none", async () => {
    await using server = await answering(says([{ ...vmRecord, project_id: undefined }]));
    await using compute = clientOf(server.url);
    expect(await compute.projects.vms("prj-9")).toMatchObject([{ projectId: "prj-9" }]);
  });
});

describe("the list of all projects", () => {
  const world = { projects: 45, vmsPerProject: 0 };

  it("follows pages that are smaller than asked for", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 7 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    expect(await compute.projects.listAll()).toHaveLength(45);
    expect(sandbox.calls()).toHaveLength(7);
  });

  it("needs no total", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 20 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ list: "paged-without-total" });
    expect(await compute.projects.listAll()).toHaveLength(45);
  });

  it("stops at the most that is wanted", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 10 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    expect(await compute.projects.listAll(15)).toHaveLength(15);
    expect(sandbox.calls()).toHaveLength(2);
  });

  it("ends when the service ignores the page, and says in the log that it is incomplete", async () => {
    const events: object[] = [];
    await using server = await answering(
      says({ projects: [projectRecord], total: 50, page: 1, per_page: 1 }),
    );
    await using compute = clientOf(server.url, { log: logTo((line) => events.push(line)) });
    expect(await compute.projects.listAll()).toHaveLength(1);
    expect(server.asked.length).toBeLessThanOrEqual(9);
    expect(events).toEqual([{ event: "compute.list-incomplete", endpoint: "GET /v1/projects" }]);
  });

  it("ends when the service always says that there is more", async () => {
    await using server = await answering(says({ projects: [projectRecord], has_more: true }));
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll()).toHaveLength(1);
    expect(server.asked).toHaveLength(2);
  });

  it("asks without per_page where the service refuses ours", async () => {
    await using server = await answering((request, response) =>
      request.url?.includes("per_page")
        ? says({ error: "per_page too large" }, 422)(request, response)
        : says({ projects: request.url?.includes("page=2") ? [] : [projectRecord] })(
            request,
            response,
          ),
    );
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll()).toHaveLength(1);
    expect(server.asked).toEqual([
      "GET /v1/projects?page=1&per_page=100",
      "GET /v1/projects",
      "GET /v1/projects?page=2",
    ]);
  });

  it("reads known pages side by side: 500 projects cost two round trips", async () => {
    await using sandbox = await startSandboxCompute({
      world: { projects: 500, vmsPerProject: 0 },
      latencyMs: 1_000,
    });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    const startedAt = performance.now();
    expect(await compute.projects.listAll()).toHaveLength(500);
    expect(sandbox.calls()).toHaveLength(5);
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });
});
