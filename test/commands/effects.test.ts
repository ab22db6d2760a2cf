import { describe, expect, it } from "vitest";
import { create } from "../../src/commands/project/create.ts";
import { deleteProject } from "../../src/commands/project/delete.ts";
import { notChangeable, unknownStatus } from "../../src/commands/effects.ts";
import { update } from "../../src/commands/project/update.ts";
import { resize } from "../../src/commands/vm/resize.ts";
import { restart } from "../../src/commands/vm/restart.ts";
import { start } from "../../src/commands/vm/start.ts";
import { stop } from "../../src/commands/vm/stop.ts";
import { type Project, unreadable, type Vm } from "../../src/fleet/compute/compute.ts";

const vm = (status: string, over: Partial<Vm> = {}): Vm => ({
  id: "vm-1",
  projectId: "p-1",
  name: "web-1",
  status,
  specs: { cpu: 2, memory: 4, disk: 20 },
  ...over,
});
const project = (over: Partial<Project> = {}): Project => ({
  id: "p-1",
  name: "shop",
  type: "TEE_VM",
  status: "ACTIVE",
  ...over,
});
const early = { updatedAt: "2026-11-20T12:00:00Z" };
const late = { updatedAt: "2026-11-20T12:00:05Z" };
const running = vm("RUNNING");
const stopped = vm("STOPPED");

/** In which of the known statuses a command goes ahead at once; CREATING and REBOOTING are waited out. */
function goesAheadIn(notNow: (seen: Vm) => unknown) {
  return ["CREATING", "RUNNING", "STOPPED", "REBOOTING", "ERROR", "DELETING"].filter(
    (status) => notNow(vm(status)) === undefined,
  );
}

describe("what a VM must be for a change", () => {
  it.each([
    [start, ["CREATING", "RUNNING", "STOPPED", "REBOOTING", "ERROR"]],
    [stop, ["CREATING", "RUNNING", "STOPPED", "REBOOTING"]],
    [restart, ["CREATING", "RUNNING", "REBOOTING", "ERROR"]],
    [resize, ["CREATING", "RUNNING", "STOPPED", "REBOOTING"]],
  ])("$name", ({ effect }, statuses) => {
    expect(goesAheadIn((seen) => effect.notNow?.(seen))).toEqual(statuses);
  });

  it.each([start, stop, restart, resize])(
    "$name never goes on top of a status that we don't know",
    ({ effect }) => {
      expect(effect.notNow?.(vm("MIGRATING"))).toEqual({
        text: "web-1 is MIGRATING, a status that Gatehouse doesn't know.",
        hint: "Nothing was sent. Check it in the compute service's own console.",
      });
      expect(effect.already?.(vm("MIGRATING"), { cpu: 9 })).not.toBe(true);
    },
  );

  it("is said with the way out", () => {
    expect(restart.effect.notNow?.(stopped)).toEqual({
      text: "web-1 is stopped.",
      hint: "`/vm start web-1` starts it.",
      instead: { label: "Start", command: "vm.start" },
    });
    expect(stop.effect.notNow?.(vm("ERROR"))).toEqual({
      text: "web-1 is ERROR, and only a running VM can be stopped.",
      hint: "`/vm restart web-1` may recover it.",
    });
    expect(start.effect.notNow?.(vm("DELETING"))).toEqual({ text: "web-1 is being deleted." });
    expect(unknownStatus(running)).toBeUndefined();
  });
});

describe("vm start and vm stop", () => {
  it("send nothing when it stands that way already", () => {
    expect(start.effect.already?.(running, {})).toBe(true);
    expect(start.effect.already?.(stopped, {})).toBe(false);
    expect(stop.effect.already?.(stopped, {})).toBe(true);
    expect(stop.effect.already?.(running, {})).toBe(false);
  });

  it("are proven by the state that was asked for, disproven by the old one", () => {
    expect(start.effect.wanted(running, stopped, {})).toBe(true);
    expect(start.effect.wanted(stopped, stopped, {})).toBe(false);
    expect(start.effect.wanted(undefined, stopped, {})).toBe(false);
    expect(start.effect.untouched?.(stopped, stopped, {})).toBe(true);
    expect(start.effect.untouched?.(vm("ERROR"), stopped, {})).toBe(false);
    expect(start.effect.untouched?.(undefined, stopped, {})).toBe(false);
    expect(stop.effect.wanted(stopped, running, {})).toBe(true);
    expect(stop.effect.untouched?.(running, running, {})).toBe(true);
  });
});

describe("vm restart", () => {
  it("ends as it began, so only a mark proves it", () => {
    const { effect } = restart;
    expect(effect.wanted(running, running, {})).toBe(true);
    expect(effect.needsMark).toBe(true);
    expect(effect.already).toBeUndefined();
    expect(effect.mark?.(running, running)).toBe(false);
    expect(effect.mark?.(vm("REBOOTING"), running)).toBe(true);
    expect(effect.mark?.(vm("STOPPED"), running)).toBe(true);
    expect(effect.mark?.(running, vm("ERROR"))).toBe(false);
    expect(effect.mark?.(vm("RUNNING", late), vm("RUNNING", early))).toBe(false);
    expect(effect.mark?.(vm(unreadable), running)).toBe(false);
    expect(effect.mark?.(running, vm(unreadable))).toBe(false);
  });

  it("is never proved not to have happened: a time that stays proves nothing", () => {
    expect(restart.effect.untouched).toBeUndefined();
  });
});

describe("vm resize", () => {
  const args = { vm: "web-1", cpu: 4, memory: 8 };
  const resized = vm("RUNNING", { specs: { cpu: 4, memory: 8, disk: 20 } });

  it("is proven by the specs", () => {
    const { effect } = resize;
    expect(effect.already?.(resized, args)).toBe(true);
    expect(effect.already?.(running, args)).toBe(false);
    expect(effect.wanted(resized, running, args)).toBe(true);
    expect(effect.wanted({ ...resized, status: "ERROR" }, running, args)).toBe(false);
    expect(effect.untouched?.(running, running, args)).toBe(true);
    expect(effect.untouched?.(resized, running, args)).toBe(false);
  });

  it("is not disproven by specs that the service does not show", () => {
    const bare: Vm = { id: "vm-1", projectId: "p-1", name: "web-1", status: "RUNNING" };
    expect(resize.effect.untouched?.(bare, bare, args)).toBe(false);
    expect(resize.effect.already?.(bare, args)).toBe(false);
  });
});

describe("project create", () => {
  it("is refused while the name is taken", () => {
    expect(create.effect.notNow?.([project()])).toEqual({
      text: "A project called shop already exists.",
      hint: "Choose another name.",
    });
    expect(create.effect.notNow?.([])).toBeUndefined();
  });

  it("is proven by exactly one project of that name, and disproven by none", () => {
    const { wanted, untouched, mark } = create.effect;
    expect(wanted([project()], [], {})).toBe(true);
    expect(wanted([project(), project({ id: "p-2" })], [], {})).toBe(false);
    expect(wanted([], [], {})).toBe(false);
    expect(wanted([project({ status: "ERROR" })], [], {})).toBe(false);
    expect(mark?.([project({ status: "CREATING" })], [])).toBe(true);
    expect(untouched?.([], [], {})).toBe(true);
    expect(untouched?.([project()], [], {})).toBe(false);
    expect(untouched?.(undefined, [], {})).toBe(false);
  });
});

describe("project update", () => {
  const before = project({ specs: { cpu: 2, memory: 4 } });

  it("is proven by the fields", () => {
    const { effect } = update;
    const renamed = project({ name: "store", specs: { cpu: 2, memory: 4 } });
    expect(effect.already?.(renamed, { name: "store" })).toBe(true);
    expect(effect.wanted(renamed, before, { name: "store" })).toBe(true);
    expect(effect.wanted(before, before, { name: "store" })).toBe(false);
    expect(effect.untouched?.(before, before, { name: "store", cpu: 4 })).toBe(true);
    expect(effect.untouched?.(renamed, before, { name: "store", cpu: 4 })).toBe(false);
  });

  it("is not disproven by specs that the service does not show", () => {
    expect(update.effect.untouched?.(project(), project(), { cpu: 4 })).toBe(false);
    expect(update.effect.hides?.(project(), { cpu: 4 })).toBe(true);
    expect(update.effect.hides?.(before, { cpu: 4 })).toBe(false);
    expect(update.effect.hides?.(project(), { name: "store" })).toBe(false);
  });
});

describe("project delete", () => {
  it("is proven by absence, begun by DELETING", () => {
    const { wanted, mark, untouched } = deleteProject.effect;
    expect(wanted(undefined, project(), {})).toBe(true);
    expect(wanted(project({ status: "DELETING" }), project(), {})).toBe(false);
    expect(mark?.(project({ status: "DELETING" }), project())).toBe(true);
    expect(untouched?.(project(), project(), {})).toBe(true);
    expect(untouched?.(undefined, project(), {})).toBe(false);
  });

  it("is refused while the project is being deleted, or is in a status that we don't know", () => {
    expect(notChangeable(project({ status: "DELETING" }))).toEqual({
      text: "shop is already being deleted.",
    });
    expect(notChangeable(project({ status: "MOVING" }))).toMatchObject({
      text: "shop is MOVING, a status that Gatehouse doesn't know.",
    });
    for (const status of ["ACTIVE", "STOPPED", "ERROR", "CREATING"])
      expect(notChangeable(project({ status }))).toBeUndefined();
  });
});
