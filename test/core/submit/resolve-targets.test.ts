import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { show } from "../../../src/commands/vm/show.ts";
import { createCompute } from "../../../src/fleet/compute/create-compute.ts";
import { UserError } from "../../../src/errors.ts";
import { PickOne, resolveTarget, targetOfVm } from "../../../src/core/submit/resolve-targets.ts";
import { type Reading, startReading } from "../../commands/reading.ts";
import { askingFor } from "../../support/permits.ts";
import { member } from "../asking.ts";

let at: Reading;
beforeAll(async () => {
  at = await startReading({ world: "demo" });
  await at.inventory.refresh();
});
afterAll(() => at[Symbol.asyncDispose]());

const asking = askingFor(show, member("U0OLIVIA"));
const vm = (words: string) => resolveTarget(asking, "vm", words, at.inventory);
const project = (words: string) => resolveTarget(asking, "project", words, at.inventory);
const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a name that somebody typed", () => {
  it("is one VM by id, by a name that only one has, or by project and name", async () => {
    for (const words of ["vm-payments-web-2", "web-2", "WEB-2", "payments/web-2", " web-2 "]) {
      expect(await vm(words)).toMatchObject({
        kind: "vm",
        id: "vm-payments-web-2",
        name: "web-2",
        projectId: "prj-payments",
        projectName: "payments",
        status: "RUNNING",
        specs: { cpu: 4, memory: 16, disk: 100 },
      });
    }
    expect((await vm("staging/web-1")).id).toBe("vm-staging-web-1");
    expect(await project("docs-site")).toMatchObject({
      kind: "project",
      id: "prj-docs-site",
      projectId: "prj-docs-site",
    });
  });

  it("is never guessed at when two VMs have it: the person picks", async () => {
    const error = await failure(vm("web-1"));
    expect(error).toBeInstanceOf(PickOne);
    expect(error).toMatchObject({
      message: "2 VMs are called web-1. Which one?",
      isAmbiguous: true,
    });
    expect((error as PickOne).candidates.map(({ id }) => id).toSorted()).toEqual([
      "vm-payments-web-1",
      "vm-staging-web-1",
    ]);
  });

  it("is only suggested when nobody has it but some nearly do", async () => {
    const error = await failure(vm("web-3"));
    expect(error).toBeInstanceOf(PickOne);
    expect(error).toMatchObject({
      isAmbiguous: false,
      message: "There is no VM called web-3. Did you mean…",
    });
    expect((error as PickOne).candidates.length).toBeGreaterThan(0);
  });

  it.each([
    "",
    "  ",
    "zzzzzzzzzz",
    "../projects/1",
    "a%2fb",
    "\u0000",
    "payments/",
    "/web-2",
    "payments/web-2/x",
    "x".repeat(5000),
  ])("%j is nothing, in a sentence", async (words) => {
    for (const error of [await failure(vm(words)), await failure(project(words))]) {
      expect(error).toBeInstanceOf(UserError);
      expect((error as UserError).message).toMatch(/^(There is no|That)/);
    }
  });

  it("isn't a project's when it is a VM's, nor the other way round", async () => {
    expect(await failure(project("web-2"))).toBeInstanceOf(UserError);
    expect(await failure(vm("prj-payments"))).toBeInstanceOf(UserError);
  });
});

describe("a VM that was just read", () => {
  it("is the same target as the one that was looked up", async () => {
    const known = await vm("web-2");
    const { url: baseUrl, apiKey } = at.service;
    const compute = createCompute({ baseUrl, apiKey, timeoutMs: 60_000 });
    expect(targetOfVm(await compute.vms.get(known.id), "payments")).toEqual(known);
    await compute.close();
  });
});
