import type { RequestListener, ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import { type Compute, ComputeError } from "../../src/fleet/compute/compute.ts";
import { createCompute } from "../../src/fleet/compute/create-compute.ts";
import { isChange } from "../../src/registry/define.ts";
import { readTarget } from "../../src/core/perform/read-target.ts";
import { type Answering, answering, says } from "../fleet/compute/answering.ts";
import { project, vm } from "../core/permit/sample.ts";

const inputs: Record<string, object> = {
  "vm resize": { cpu: 2, memory: 4 },
  "vm restore": { snapshot: "snap-1" },
  "project create": { name: "shop", type: "CONTAINER", region: "eu" },
  "project update": { rename: "stage", name: "stage", cpu: 2 },
};
const page = "<!doctype html><html><body>Sign in</body></html>";
const statuses = [200, 201, 202, 400, 401, 403, 404, 405, 409, 422, 429, 500, 502];

/** A page of a proxy in the way, with this status. */
const html =
  (status: number, type = "text/html; charset=utf-8") =>
  (_: unknown, response: ServerResponse) =>
    void response.writeHead(status, { "content-type": type }).end(page);

/** One server whose answers are set by each test, and a client of it. */
let answer: RequestListener = says({});
let server: Answering;
let compute: Compute;
beforeAll(async () => {
  server = await answering((request, response) => answer(request, response));
  const retryDelays = { baseMs: 1, maxMs: 2 };
  compute = createCompute({ baseUrl: server.url, apiKey: "key", timeoutMs: 60_000, retryDelays });
});
afterAll(async () => {
  await compute.close();
  await server[Symbol.asyncDispose]();
});

async function failure(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ComputeError) return error.kind;
    throw error;
  }
  return "none";
}

// What is only kept is sent to nobody
const changes = commands.filter(isChange).filter((one) => one.on !== "vm" || !one.keeps);

describe.each(changes.map((command) => [command.name, command] as const))("%s", (name, command) => {
  const target =
    command.on === "vm" ? vm("web-1") : project(command.on === "new-project" ? "shop" : "web");

  it("is unclear whatever the status of a page that answers it: nothing is proved", async () => {
    for (const status of statuses)
      for (const type of ["text/html", "application/json"]) {
        answer = html(status, type);
        server.asked.length = 0;
        const args = (inputs[name] ?? {}) as never;
        const call = Promise.try(() => command.perform(target, args, { compute }));
        expect(await failure(call), `${status} ${type}`).toBe("unclear");
        expect(server.asked).toHaveLength(1);
      }
  });
});

describe("a read that a page or another record answers", () => {
  const targets = [vm("web-1"), project("web"), { ...project("shop"), id: "" }];

  it.each(statuses)("proves nothing with %i: no absence, no refusal, no state", async (status) => {
    for (const target of targets) {
      answer = html(status);
      const kind = await failure(readTarget(target, { compute }));
      expect(["unreachable", "unexpected", "busy"], target.id).toContain(kind);
    }
  });

  it("proves no absence when the record alone is a page with 404, and the control read succeeds", async () => {
    for (const target of targets.slice(0, 2)) {
      answer = (request, response) =>
        /\/v1\/projects\?/.test(request.url ?? "")
          ? says([])(request, response)
          : html(404)(request, response);
      expect(await failure(readTarget(target, { compute }))).toBe("unreachable");
    }
  });

  it("proves nothing with JSON of another kind, nor with the record of something else", async () => {
    const other = {
      id: "another",
      project_id: "prj-1",
      type: "TEE_VM",
      name: "web-1",
      status: "RUNNING",
    };
    for (const body of [{ ok: true }, [], "OK", { error: "none" }, other])
      for (const target of targets.slice(0, 2)) {
        answer = says(body);
        expect(await failure(readTarget(target, { compute }))).toBe("unexpected");
      }
  });
});

describe("a snapshot's ID", () => {
  it.each([
    [{ id: "req-1", ok: true }],
    [{ id: "u-1", email: "a@example.com" }],
    [{ id: "s-1", message: "sign in" }],
  ])("is none in JSON of another kind: %j", async (body) => {
    answer = says(body, 201);
    expect((await compute.vms.snapshot("vm-1", "nightly")).snapshotId).toBeUndefined();
  });
});

describe("a console", () => {
  it.each([[{ ok: true }], [{ url: "https://proxy.example/login" }], ["OK"]])(
    "is none in JSON of another kind: %j",
    async (body) => {
      answer = says(body);
      expect(await failure(compute.vms.console("vm-1"))).toBe("unexpected");
    },
  );

  it.each(statuses)("is none on a page with %i", async (status) => {
    answer = html(status);
    expect(await failure(compute.vms.console("vm-1"))).toBe("unclear");
  });
});
