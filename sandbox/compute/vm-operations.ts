import {
  boot,
  measurementOf,
  noEffects,
  type SandboxVm,
  type VmEffects,
  type VmSpecs,
  Refusal,
} from "./records.ts";
import type { Fate, Operation, World } from "./world.ts";

interface Course {
  from: readonly string[];
  /** The API has no STARTING or STOPPING: a VM that stops shows RUNNING until it has stopped. */
  via: string | null;
  to: (before: string) => string;
  boots: boolean;
  effect: keyof VmEffects;
}

const courses: Record<"start" | "stop" | "restart" | "resize" | "restore", Course> = {
  start: { from: ["STOPPED"], via: "CREATING", to: () => "RUNNING", boots: true, effect: "starts" },
  stop: { from: ["RUNNING"], via: null, to: () => "STOPPED", boots: false, effect: "stops" },
  restart: {
    from: ["RUNNING"],
    via: "REBOOTING",
    to: () => "RUNNING",
    boots: true,
    effect: "restarts",
  },
  resize: {
    from: ["RUNNING", "STOPPED"],
    via: "REBOOTING",
    to: (before) => before,
    boots: true,
    effect: "resizes",
  },
  restore: {
    from: ["RUNNING", "STOPPED", "ERROR"],
    via: "REBOOTING",
    to: () => "RUNNING",
    boots: true,
    effect: "restores",
  },
};

export type VmOperations = ReturnType<typeof createVmOperations>;

/** A state that ends only once it was read: by so many more reads, with what ends it when its time is over. */
interface Unread {
  left: number;
  end?: () => void;
}

/**
 * So many reads of a list may pass, because others ask for it, too: two processes that start, and a poll that began before the change
 * was sent. A read of the VM itself counts as all of them.
 */
const readsOfList = 4;

/**
 * What the API can do to a VM. Each returns what it made or a Refusal; effects take their time, and with `isReadFirst` until their
 * state was read.
 */
export function createVmOperations(
  world: World,
  msOf: (operation: Operation) => number,
  isReadFirst = false,
) {
  const unread = new Map<SandboxVm, Unread>();

  function run(
    vm: SandboxVm,
    operation: keyof typeof courses,
    fate: Fate,
    change: (vm: SandboxVm) => void = () => {},
  ): SandboxVm | Refusal {
    const course = courses[operation];
    if (vm.busy) return new Refusal(409, "conflict", `${vm.name} is busy with another operation`);
    if (!course.from.includes(vm.status)) {
      return new Refusal(
        409,
        "conflict",
        `${vm.name} is ${vm.status}, ${operation} needs ${course.from.join(" or ")}`,
      );
    }
    const before = vm.status;
    count(vm, course.effect);
    vm.busy = true;
    vm.updatedAt = Date.now();
    vm.status = (fate.via === undefined ? course.via : fate.via) ?? before;
    if (fate.stuck) return vm;
    if (isReadFirst && vm.status !== before) unread.set(vm, { left: readsOfList });
    world.after(msOf(operation), () => {
      const waiting = unread.get(vm);
      if (waiting) waiting.end = end;
      else end();
    });
    return vm;

    function end() {
      vm.busy = false;
      vm.updatedAt = Date.now();
      if (vm.status === "DELETING") return;
      vm.status = fate.goesTo ?? course.to(before);
      if (fate.goesTo === undefined) change(vm);
      if (course.boots && vm.status === "RUNNING") boot(vm);
    }
  }

  /** Notes that somebody read the VM, by itself or in a list. */
  function noteRead(vm: SandboxVm, where: "alone" | "list"): void {
    const waiting = unread.get(vm);
    if (!waiting) return;
    waiting.left -= where === "alone" ? readsOfList : 1;
    if (waiting.left > 0) return;
    unread.delete(vm);
    waiting.end?.();
  }

  return {
    noteRead,
    start: (vm: SandboxVm, fate: Fate = {}) => run(vm, "start", fate),
    stop: (vm: SandboxVm, fate: Fate = {}) => run(vm, "stop", fate),
    restart: (vm: SandboxVm, fate: Fate = {}) => run(vm, "restart", fate),

    resize: (vm: SandboxVm, specs: Partial<VmSpecs>, fate: Fate = {}) =>
      run(vm, "resize", fate, (it) => {
        it.specs = { ...it.specs, ...specs };
      }),

    /** Keeps specs, disk content and measurement as they are now. */
    snapshot(vm: SandboxVm, name: string) {
      if (vm.busy || !["RUNNING", "STOPPED"].includes(vm.status)) {
        return new Refusal(
          409,
          "conflict",
          `${vm.name} is ${vm.status} and can't be snapshotted now`,
        );
      }
      count(vm, "snapshots");
      const snapshot = {
        id: world.newId("snap"),
        vmId: vm.id,
        name,
        specs: vm.specs,
        content: vm.content,
        measurement: measurementOf(vm),
        createdAt: Date.now(),
      };
      world.snapshots.set(snapshot.id, snapshot);
      return snapshot;
    },

    restore(vm: SandboxVm, snapshotId: string, fate: Fate = {}) {
      const snapshot = world.snapshots.get(snapshotId);
      if (!snapshot || snapshot.vmId !== vm.id) {
        return new Refusal(
          422,
          "unknown_snapshot",
          `${vm.name} has no snapshot ${snapshotId.slice(0, 60)}`,
        );
      }
      return run(vm, "restore", fate, (it) => {
        it.specs = snapshot.specs;
        it.content = snapshot.content;
        it.measurement = snapshot.measurement;
      });
    },

    console: (vm: SandboxVm) => {
      if (vm.status !== "RUNNING")
        return new Refusal(409, "conflict", `${vm.name} is ${vm.status}, a console needs RUNNING`);
      count(vm, "consoles");
      return vm;
    },
  };
}

function count(vm: SandboxVm, effect: keyof VmEffects): void {
  vm.effects ??= noEffects();
  vm.effects[effect] += 1;
}
