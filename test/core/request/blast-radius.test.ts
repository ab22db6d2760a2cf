import { describe, expect, it } from "vitest";
import { deleteProject } from "../../../src/commands/project/delete.ts";
import type { Target } from "../../../src/registry/define.ts";
import { createJournal, newNonce } from "../../../src/core/request/journal.ts";
import { testRedis } from "../../support/with-redis.ts";
import { storeRequest, movedBy, restartOf, stageOf, vmTarget } from "../asking.ts";

const project: Target = {
  kind: "project",
  id: "prj-payments",
  name: "payments",
  projectId: "prj-payments",
  status: "ACTIVE",
};

const [db, web] = [vmTarget("db-1"), vmTarget("web-1")];

const claim = (vmIds: readonly string[] = []) => ({
  to: stageOf("sending"),
  why: "claimed",
  owner: "w-1",
  claim: { vmIds, nonce: newNonce() },
});

async function asked() {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  const store = createJournal(redis, key);
  const { approval: _none, ...onVm } = restartOf(db);
  const { approval: _neither, ...onProject } = restartOf(project, {
    command: deleteProject,
    input: { project: project.id },
  });
  return {
    store,
    vm: await storeRequest(store, onVm),
    whole: await storeRequest(store, onProject),
    [Symbol.asyncDispose]: close,
  };
}

describe("what destroys a project", () => {
  it("waits while one of its VMs is being changed", async () => {
    await using here = await asked();
    expect((await here.store.move(here.vm, claim())).kind).toBe("moved");
    const refused = await here.store.move(here.whole, claim([web.id, db.id]));
    expect(refused).toEqual({ kind: "locked", holder: here.vm.record.id });
  });

  it("keeps all of its VMs from being changed meanwhile", async () => {
    await using here = await asked();
    const taken = await movedBy(here.store.move(here.whole, claim([web.id, db.id])));
    const refused = { kind: "locked", holder: here.whole.record.id };
    expect(await here.store.move(here.vm, claim())).toEqual(refused);
    await here.store.move(taken, { to: stageOf("rejected"), why: "refused" });
    expect((await here.store.move(here.vm, claim())).kind).toBe("moved");
  });
});
