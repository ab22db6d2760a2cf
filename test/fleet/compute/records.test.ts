import { describe, expect, it } from "vitest";
import { answering, clientOf, failureOf, projectRecord, says, vmRecord } from "./answering.ts";

describe("a VM record", () => {
  const vm = { id: "vm-1", projectId: "prj-1", name: "web-1", status: "RUNNING" };

  const tolerated: [what: string, body: unknown, expected: object][] = [
    ["as documented", vmRecord, vm],
    ["wrapped in vm", { vm: vmRecord }, vm],
    ["wrapped in data", { status: "ok", data: vmRecord }, vm],
    ["wrapped twice", { data: { vm: vmRecord } }, vm],
    ["with unknown fields", { ...vmRecord, shiny: { deep: [1] } }, vm],
    [
      "with an unknown status",
      { ...vmRecord, status: "MIGRATING" },
      { ...vm, status: "MIGRATING" },
    ],
    [
      "with nulls",
      {
        ...vmRecord,
        specs: null,
        region: null,
        ip_address: null,
        attestation: null,
        created_at: null,
      },
      vm,
    ],
    [
      "with fields of the wrong type",
      { ...vmRecord, specs: "4x16", region: 7, ip_address: [], attestation: true },
      vm,
    ],
    [
      "with half of its specs",
      { ...vmRecord, specs: { cpu: 4, memory: "16", disk: null } },
      { ...vm, specs: { cpu: 4 } },
    ],
    [
      "with numbers for ids",
      { ...vmRecord, id: 12, project_id: 3 },
      { ...vm, id: "12", projectId: "3" },
    ],
    ["without a name", { ...vmRecord, name: undefined }, { ...vm, name: "vm-1" }],
  ];

  it.each(tolerated)("is read %s", async (_, body, expected) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await compute.vms.get((expected as { id: string }).id)).toEqual(expected);
  });

  it.each([
    ["id", "is missing"],
    ["status", "is missing"],
    ["project_id", "is missing"],
  ])("without %s is unexpected, and the error names endpoint and field", async (field, problem) => {
    await using server = await answering(says({ ...vmRecord, [field]: undefined }));
    await using compute = clientOf(server.url);
    const error = await failureOf(compute.vms.get("vm-1"));
    expect(error).toMatchObject({ kind: "unexpected", reason: "answer", status: 200 });
    expect(error.message).toContain("GET /v1/vms/{vm_id}");
    expect(error.message).toMatch(new RegExp(`: ${field} ${problem}$`));
  });

  it("is named by its place in a list without a record that can be used", async () => {
    await using server = await answering(says({ vms: [{ ...vmRecord, id: null }] }));
    await using compute = clientOf(server.url);
    expect((await failureOf(compute.projects.vms("prj-1"))).message).toMatch(
      /vms\[0\]\.id is missing$/,
    );
  });

  it.each([
    ["a text", '"RUNNING"'],
    ["a list", "[]"],
    ["null", "null"],
    ["a number", "7"],
  ])("is unexpected when it is %s", async (_, text) => {
    await using server = await answering((__, response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(text),
    );
    await using compute = clientOf(server.url);
    expect(await failureOf(compute.vms.get("vm-1"))).toMatchObject({ kind: "unexpected" });
  });

  it("can't reach our prototypes through __proto__ or constructor", async () => {
    const text = `{"__proto__": {"id": "evil", "status": "RUNNING", "polluted": 1}, "constructor": {"prototype": {"polluted": 1}},
      "id": "vm-1", "project_id": "prj-1", "status": "RUNNING", "specs": {"__proto__": {"cpu": 64}}}`;
    await using server = await answering((__, response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(text),
    );
    await using compute = clientOf(server.url);
    const read = await compute.vms.get("vm-1");
    expect(read).toEqual({ ...vm, name: "vm-1", specs: {} });
    expect(read.specs?.cpu).toBeUndefined();
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(Reflect.get({}, "polluted")).toBeUndefined();
    const hidden = await failureOf(clientOf(server.url).projects.get("prj-1"));
    expect(hidden.message).toMatch(/type is missing$/);
  });

  it("survives JSON that is 100,000 levels deep", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    await using server = await answering((__, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(
          `{"id": "vm-1", "project_id": "p", "status": "RUNNING", "specs": ${deep}, "x": ${deep}}`,
        ),
    );
    await using compute = clientOf(server.url);
    expect((await compute.vms.get("vm-1")).status).toBe("RUNNING");
    expect(await compute.vms.restart("vm-1")).toMatchObject({ status: 200 });
  });
});

describe("other records", () => {
  it("a project is read from its wrapper, with specs where a detail shows them", async () => {
    await using server = await answering(
      says({ project: { ...projectRecord, specs: { cpu: 2 }, owner: "me" } }),
    );
    await using compute = clientOf(server.url);
    expect(await compute.projects.get("prj-1")).toEqual({
      id: "prj-1",
      name: "payments",
      type: "TEE_VM",
      status: "ACTIVE",
      specs: { cpu: 2 },
    });
  });

  it("metrics keep the samples that can be used", async () => {
    const at = "2026-11-20T10:00:00Z";
    await using server = await answering(
      says({
        data: {
          cpu_usage: [{ timestamp: at, value: 5 }, { timestamp: at, value: "7" }, null],
          memory_usage: null,
          disk_usage: "full",
        },
      }),
    );
    await using compute = clientOf(server.url);
    expect(await compute.vms.metrics("vm-1", "1h")).toEqual({
      cpuUsage: [{ timestamp: at, value: 5 }],
      memoryUsage: [],
    });
  });

  it("an attestation report never turns into verified by anything but true", async () => {
    await using server = await answering(
      says({
        attestation: { verified: "true", measurement: "ab", platform: { vendor: "AMD", model: 7 } },
      }),
    );
    await using compute = clientOf(server.url);
    expect(await compute.vms.attestation("vm-1")).toEqual({
      measurement: "ab",
      platform: { vendor: "AMD" },
    });
  });
});
