import { describe, expect, it } from "vitest";
import { storedPolicyKey } from "../../../src/audit/stored-policy.ts";
import { deleteProject } from "../../../src/commands/project/delete.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import type { RequestIn } from "../../../src/core/request/stored-request.ts";
import { targetChange, gate } from "../../../src/core/perform/gate.ts";
import { advance } from "../../../src/core/perform/perform.ts";
import { readTarget } from "../../../src/core/perform/read-target.ts";
import { policyOf } from "../permit/sample.ts";
import { storeRequest, member, restartOf, vmTarget } from "../asking.ts";
import { type WorkerHere, asChange, workerHere } from "./worker-here.ts";

async function asked(here: WorkerHere, words = "web-2"): Promise<RequestIn<"authorized">> {
  const { approval: _none, ...plain } = restartOf(await here.vm(words));
  return storeRequest(here.by.store, plain);
}

const verdict = (request: RequestIn<"authorized">, here: WorkerHere) =>
  gate(request, asChange(restart, { vms: [request.record.target.id] }), here.by);

describe("the gate before a send", () => {
  it("opens for the same VM, the same policy and a requester who still may", async () => {
    await using here = await workerHere();
    const seen = await verdict(await asked(here), here);
    expect(seen).toMatchObject({
      kind: "open",
      before: { id: "vm-payments-web-2", status: "RUNNING" },
    });
  });

  it("judges by what its project is called now, not by what was known when it was requested", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    const rules = `access: { operate: ["U0OLIVIA"], approve: ["U0AMIR"] }`;
    here.by.policy = policyOf(
      `${rules}\napprovals: [{ operations: ["vm.*"], targets: ["search"], required: 1 }]`,
    );
    expect(await verdict(request, here)).toMatchObject({ kind: "open" });
    here.compute.edit.findProject("payments").name = "search";
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: expect.stringMatching(/approval/),
    });
    here.by.policy = policyOf(`${rules}
teams: { search: { projects: ["search"], operate: ["S09SEARCH"], approve: ["S09SEARCH"] } }`);
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: "the project payments is called search by now and belongs to another team",
    });
    expect(here.compute.writes()).toEqual([]);
  });

  it("closes when the VM now belongs to another project", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.edit.findVm("web-2").projectId = here.compute.edit.addProject({
      id: "prj-search",
      name: "search",
    });
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: "web-2 now belongs to another project",
    });
  });

  it("waits where its project can't be read", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    for (const status of [500, 404]) {
      here.compute.weather({ match: "GET /v1/projects/*", status });
      expect(await verdict(request, here)).toMatchObject({ kind: "later" });
    }
  });

  it("closes when the policy is another one than the one it was asked under", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    await here.redis.hset(storedPolicyKey(here.key), "rules", "v2");
    here.by.policyVersion = "v2";
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: expect.stringMatching(/policy changed/),
    });
  });

  it("leaves a request under another policy to workers that have the one in force, while its own isn't, or none is known to be", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.by.policyVersion = "v0";
    expect(await verdict(request, here)).toMatchObject({ kind: "later" });
    await here.redis.hset(storedPolicyKey(here.key), "rules", "v1");
    expect(await verdict(request, here)).toMatchObject({ kind: "later" });
  });

  it("leaves such a request to them, too, if its requester opens it, and cancels it once its own policy is in force", async () => {
    await using here = await workerHere();
    here.by.commands = [{ ...restart, openedBy: "Open console" }];
    const { record } = await asked(here);
    await here.redis.hset(storedPolicyKey(here.key), "rules", "v1");
    here.by.policyVersion = "v0";
    expect(await advance(record.id, here.by)).toMatchObject({ kind: "wait" });
    expect(await here.by.store.get(record.id)).toMatchObject({
      state: "authorized",
      stage: { why: "it waits for a worker that has the new policy" },
    });
    await here.redis.hset(storedPolicyKey(here.key), "rules", "v0");
    await advance(record.id, here.by);
    expect(await here.by.store.get(record.id)).toMatchObject({
      state: "cancelled",
      stage: { why: "the policy changed since this request" },
    });
  });

  it.each([
    ["guest", { kind: "guest" }],
    ["deactivated", { kind: "deactivated" }],
    ["of another team", { teamId: "T0THEIRS" }],
    ["no operator any more", { id: "U0NOBODY" }],
  ] as const)("closes when the requester is %s by now", async (_what, over) => {
    await using here = await workerHere();
    const request = await asked(here);
    here.people.set("U0OLIVIA", member("U0OLIVIA", over));
    expect((await verdict(request, here)).kind).toBe("closed");
    expect(here.compute.writes()).toEqual([]);
  });

  it("opens for a requester who joined seconds ago, as far as this worker doesn't know yet", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    const { person } = here.by;
    here.by.person = async (id, teamId, how) =>
      how?.fresh ? person(id, teamId) : { ...(await person(id, teamId)), groups: [] };
    expect((await verdict(request, here)).kind).toBe("open");
  });

  it("waits while Slack can't say who the requester is", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.people.delete("U0OLIVIA");
    expect((await verdict(request, here)).kind).toBe("later");
  });

  it("closes when the VM was renamed, even if another one has its name now", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.edit.renameVm({ vm: "web-2", name: "web-9" });
    here.compute.edit.renameVm({ vm: "db-1", name: "web-2" });
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: "web-2 is now called web-9",
    });
  });

  it("closes when the VM has other specs, and says which", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.edit.changeBehindTheBack({ vm: "web-2", specs: { memory: 32 } });
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: "web-2 changed since the request: memory 16 → 32",
    });
  });

  it("closes when the VM is gone and another one bears its name", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.edit.replaceVm({ vm: "web-2" });
    expect(await verdict(request, here)).toMatchObject({ kind: "closed", why: "web-2 is gone" });
  });

  it("waits while everything answers 404, because that proves nothing", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.weather({ status: 404 });
    expect(await verdict(request, here)).toMatchObject({ kind: "later" });
  });

  it("closes with the reason when the service refuses our key", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.weather({ status: 401 });
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      hint: expect.stringMatching(/COMPUTE_API_KEY/),
    });
  });

  it("waits while the VM is changing, and closes in a state that it doesn't know", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.compute.edit.setStatus({ vm: "web-2", status: "REBOOTING" });
    expect((await verdict(request, here)).kind).toBe("later");
    here.compute.edit.setStatus({ vm: "web-2", status: "MIGRATING" });
    expect(await verdict(request, here)).toMatchObject({
      kind: "closed",
      why: expect.stringMatching(/MIGRATING/),
    });
  });

  it("holds protection against projects that gained a protected VM after they were asked about", async () => {
    await using here = await workerHere();
    here.by.policy = policyOf(
      `access: { operate: ["U0OLIVIA"], approve: ["U0AMIR"] }\nprotect: ["vault-*"]\napprovals: [{ operations: ["project.delete"], required: 0 }]`,
    );
    const project = here.compute.project("ml");
    const target = {
      kind: "project" as const,
      id: project.id,
      name: "ml",
      projectId: project.id,
      status: "ACTIVE",
    };
    const { approval: _none, ...plain } = restartOf(target);
    const request = await storeRequest(here.by.store, {
      ...plain,
      command: deleteProject,
      input: { project: project.id },
    });
    const change = asChange(deleteProject, { project: project.id });
    expect((await gate(request, change, here.by)).kind).toBe("open");
    here.compute.edit.addVm({ project: "ml", name: "vault-7" });
    expect(await gate(request, change, here.by)).toMatchObject({
      kind: "closed",
      why: expect.stringMatching(/vault-7/),
    });
  });
});

describe("what was asked about and what stands", () => {
  it("differ by name, time of creation and specs, not by what the service doesn't tell", () => {
    const was = vmTarget("a", { createdAt: "2026-01-01T00:00:00Z", specs: { cpu: 2, memory: 4 } });
    const is = {
      id: was.id,
      projectId: was.projectId,
      name: "a",
      status: "STOPPED",
      createdAt: "2026-01-01T00:00:00Z",
    };
    expect(targetChange(was, is)).toBeUndefined();
    expect(targetChange(was, { ...is, specs: { cpu: 2 } })).toBeUndefined();
    expect(targetChange(was, { ...is, name: "b" })).toBe("a is now called b");
    expect(targetChange(was, { ...is, createdAt: "2026-02-01T00:00:00Z" })).toMatch(
      /was replaced since the request/,
    );
    expect(targetChange(was, { ...is, specs: { cpu: 3 } })).toBe(
      "a changed since the request: cpu 2 → 3",
    );
  });

  it("are read with the VMs of a project, and all projects of a name for one that is to be made", async () => {
    await using here = await workerHere();
    const { id } = here.compute.project("payments");
    const read = await readTarget(
      { kind: "project", id, name: "payments", projectId: id, status: "" },
      here.by,
    );
    expect(read.vms.map(({ name }) => name).toSorted()).toEqual(["db-1", "web-1", "web-2"]);
    const none = { kind: "project" as const, id: "", name: "new-one", projectId: "", status: "" };
    expect(await readTarget(none, here.by)).toEqual({ seen: [], vms: [] });
  });
});
