import { randomBytes } from "node:crypto";
import type { SandboxProject, SandboxSnapshot, SandboxVm, VmSpecs } from "./records.ts";

/** Projects, VMs and snapshots, and the clock that moves them. What was deleted stays in `graves` for the truth. */
export interface World {
  projects: Map<string, SandboxProject>;
  vms: Map<string, SandboxVm>;
  snapshots: Map<string, SandboxSnapshot>;
  graves: { projects: SandboxProject[]; vms: SandboxVm[] };
  newId(prefix: string): string;
  addProject(input: NewSandboxProject): SandboxProject;
  addVm(input: NewSandboxVm): SandboxVm;
  removeVm(vm: SandboxVm): void;
  removeProject(project: SandboxProject): void;
  /** Runs `work` later, unless the world has closed. */
  after(ms: number, work: () => void): void;
  /** Resolves when nothing is under way. A VM that is stuck doesn't count. */
  settled(): Promise<void>;
  close(): void;
}

export interface NewSandboxProject {
  id?: string | undefined;
  name: string;
  type?: string | undefined;
  status?: string | undefined;
  region?: string | undefined;
  specs?: VmSpecs | undefined;
  gitConfig?: object | undefined;
  createdAt?: number | undefined;
}

export interface NewSandboxVm {
  id?: string | undefined;
  projectId: string;
  name: string;
  status?: string | undefined;
  specs?: VmSpecs | undefined;
  attested?: boolean | undefined;
  createdAt?: number | undefined;
}

export type Operation =
  | "start"
  | "stop"
  | "restart"
  | "resize"
  | "restore"
  | "create"
  | "update"
  | "delete";

/** Fixed, or between two bounds. */
export type Span = number | readonly [number, number];

/** How an operation goes on after it was accepted; weather may change it. */
export interface Fate {
  /** Accepted, and then nothing ever happens. */
  stuck?: boolean | undefined;
  /** The state it ends in instead, e.g. ERROR. */
  goesTo?: string | undefined;
  /** The state shown meanwhile; null shows the old one. */
  via?: string | null | undefined;
}

export function createWorld(): World {
  const projects = new Map<string, SandboxProject>();
  const vms = new Map<string, SandboxVm>();
  const graves: World["graves"] = { projects: [], vms: [] };
  const timers = new Set<NodeJS.Timeout>();
  let waiting: (() => void)[] = [];
  let closed = false;

  function tellSettled(): void {
    if (timers.size > 0) return;
    for (const tell of waiting) tell();
    waiting = [];
  }

  const world: World = {
    projects,
    vms,
    snapshots: new Map(),
    graves,
    newId: (prefix) => `${prefix}-${randomBytes(5).toString("hex")}`,

    addProject(input) {
      const at = input.createdAt ?? Date.now();
      const project: SandboxProject = {
        id: input.id ?? world.newId("prj"),
        name: input.name,
        type: input.type ?? "TEE_VM",
        status: input.status ?? "ACTIVE",
        region: input.region ?? "eu-west-1",
        createdAt: at,
        updatedAt: at,
        specs: input.specs,
        gitConfig: input.gitConfig,
        vmIds: [],
        creations: 0,
        updates: 0,
        deletions: 0,
      };
      projects.set(project.id, project);
      return project;
    },

    addVm(input) {
      const project = projects.get(input.projectId);
      if (!project) throw new Error(`no project ${input.projectId}`);
      const at = input.createdAt ?? Date.now();
      const number = vms.size + graves.vms.length + 1;
      const vm: SandboxVm = {
        id: input.id ?? world.newId("vm"),
        projectId: project.id,
        name: input.name,
        status: input.status ?? "RUNNING",
        region: project.region,
        specs: input.specs ?? { cpu: 4, memory: 16, disk: 100 },
        ip: `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`,
        createdAt: at,
        updatedAt: at,
        attested: input.attested ?? true,
        verified: true,
        content: "as created",
        bootCount: 1,
        bootedAt: at,
        busy: false,
      };
      vms.set(vm.id, vm);
      project.vmIds.push(vm.id);
      return vm;
    },

    removeVm(vm) {
      vms.delete(vm.id);
      graves.vms.push(vm);
      const project = projects.get(vm.projectId);
      if (project) project.vmIds = project.vmIds.filter((id) => id !== vm.id);
    },

    removeProject(project) {
      for (const id of project.vmIds) {
        const vm = vms.get(id);
        if (vm) world.removeVm(vm);
      }
      projects.delete(project.id);
      graves.projects.push(project);
    },

    after(ms, work) {
      if (closed) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        work();
        tellSettled();
      }, ms);
      timers.add(timer);
    },

    settled: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        tellSettled();
      }),

    close() {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
      tellSettled();
    },
  };
  return world;
}
