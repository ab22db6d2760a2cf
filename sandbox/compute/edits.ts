import { evidenceWeather, type EvidenceWeatherName } from "./evidence-weather.ts";
import type { Platform } from "../evidence/vendors.ts";
import { fingerprintOf } from "../random.ts";
import { reportOf } from "./attestation.ts";
import {
  boot,
  measurementOf,
  type SandboxProject,
  type SandboxVm,
  type VmSpecs,
} from "./records.ts";
import type { NewSandboxProject, World } from "./world.ts";

/**
 * What somebody else does to the world, behind the API's back: no call, no effect counted. VMs and projects are named
 * by id, by name, or as `project/name`.
 */
export type Edits = ReturnType<typeof createEdits>;

export function createEdits(world: World) {
  function findProject(words: string): SandboxProject {
    const project =
      world.projects.get(words) ?? world.projects.values().find((each) => each.name === words);
    if (!project) throw new Error(`no project ${words}`);
    return project;
  }

  function findVm(words: string): SandboxVm {
    const byId = world.vms.get(words);
    if (byId) return byId;
    const slash = words.indexOf("/");
    const name = words.slice(slash + 1);
    const project = slash === -1 ? undefined : findProject(words.slice(0, slash));
    const found = world.vms
      .values()
      .filter((vm) => vm.name === name && (!project || vm.projectId === project.id))
      .toArray();
    if (found.length > 1) throw new Error(`several VMs are named ${words}: write project/name`);
    if (!found[0]) throw new Error(`no VM ${words}`);
    return found[0];
  }

  return {
    findVm,
    findProject,

    addProject: (input: NewSandboxProject): string => world.addProject(input).id,

    addVm({
      project,
      ...input
    }: {
      project: string;
      name: string;
      id?: string;
      status?: string;
      specs?: VmSpecs;
      attested?: boolean;
    }): string {
      return world.addVm({ ...input, projectId: findProject(project).id }).id;
    },

    renameProject({ project, name }: { project: string; name: string }): string {
      const found = findProject(project);
      found.name = name;
      return found.id;
    },
    renameVm({ vm, name }: { vm: string; name: string }): string {
      const found = findVm(vm);
      found.name = name;
      return touch(found);
    },

    /** The same VM in another project. */
    moveVm({ vm, project }: { vm: string; project: string }): string {
      const [moved, to] = [findVm(vm), findProject(project)];
      const from = findProject(moved.projectId);
      from.vmIds = from.vmIds.filter((id) => id !== moved.id);
      to.vmIds.push(moved.id);
      moved.projectId = to.id;
      return moved.id;
    },

    /** Another VM under the same name: a new id, a new time of creation, nothing on the disk. */
    replaceVm({ vm }: { vm: string }): string {
      const old = findVm(vm);
      world.removeVm(old);
      const { name, projectId, specs, attested } = old;
      return world.addVm({ name, projectId, specs, attested }).id;
    },

    /** Somebody else takes a snapshot: the API never shows it, but takes its id. */
    addSnapshot({ vm, name }: { vm: string; name: string }): string {
      const of = findVm(vm);
      const snapshot = {
        id: world.newId("snap"),
        vmId: of.id,
        name,
        specs: of.specs,
        content: of.content,
        measurement: measurementOf(of),
        createdAt: Date.now(),
      };
      world.snapshots.set(snapshot.id, snapshot);
      return snapshot.id;
    },

    removeVm: ({ vm }: { vm: string }): void => world.removeVm(findVm(vm)),
    removeProject: ({ project }: { project: string }): void =>
      world.removeProject(findProject(project)),

    /** The state alone; what runs is forgotten. */
    setStatus({ vm, status }: { vm: string; status: string }): string {
      const found = findVm(vm);
      found.status = status;
      found.busy = false;
      return touch(found);
    },

    setProjectStatus({ project, status }: { project: string; status: string }): void {
      findProject(project).status = status;
    },

    /** Drift. `reportOnly`: the record keeps saying the old one. */
    setMeasurement({
      vm,
      measurement,
      reportOnly,
    }: {
      vm: string;
      measurement?: string;
      reportOnly?: boolean;
    }): string {
      const found = findVm(vm);
      const value = measurement ?? fingerprintOf(`${found.name} tampered`);
      if (!reportOnly) found.measurement = value;
      found.reportMeasurement = reportOnly ? value : undefined;
      return value;
    },

    /** Another image, CPU vendor, or kind of VM, as if it had been started so. */
    setMachine({
      vm,
      ...machine
    }: {
      vm: string;
      image?: string;
      platform?: Platform;
      debug?: boolean;
    }): string {
      const found = findVm(vm);
      Object.assign(found, machine);
      boot(found);
      return measurementOf(found);
    },

    /** Evidence as this weather makes it; what vouches for it is `world.endorse`. `clear` is as it should be. */
    setEvidence({ vm, weather }: { vm: string; weather: EvidenceWeatherName }): void {
      const found = findVm(vm);
      const { on, name, image, debug, replays } = evidenceWeather(weather);
      Object.assign(found, { weather, platform: on, debug, replayed: undefined });
      if (name !== undefined) found.name = name;
      if (image !== undefined) found.image = image;
      boot(found);
      if (replays === undefined) return;
      const other = world.vms
        .values()
        .find((each) => each !== found && each.attested && each.status === "RUNNING");
      found.replayed = reportOf(replays === "its own" || !other ? found : other);
    },

    /** From now on the service gives this VM's report for it, under a new time: another VM's, or its own as it is now. */
    giveReportOf({ vm, of }: { vm: string; of: string }): void {
      findVm(vm).replayed = reportOf(findVm(of));
    },

    setVerified({ vm, verified }: { vm: string; verified: boolean }): void {
      findVm(vm).verified = verified;
    },

    /** Its CPU has no rest since then (ms), so its metrics are high; without it, as usual again. */
    setBusySince({ vm, since }: { vm: string; since?: number }): void {
      findVm(vm).busySince = since;
    },

    /** Somebody writes to the disk. */
    writeDisk({ vm, content }: { vm: string; content: string }): void {
      findVm(vm).content = content;
    },

    /** Somebody resizes, renames, reboots or changes the state in the service's own console. */
    changeBehindTheBack({
      vm,
      ...change
    }: {
      vm: string;
      name?: string;
      status?: string;
      specs?: Partial<VmSpecs>;
      reboot?: boolean;
    }): string {
      const found = findVm(vm);
      if (change.name !== undefined) found.name = change.name;
      if (change.status !== undefined) found.status = change.status;
      if (change.specs) found.specs = { ...found.specs, ...change.specs };
      if (change.reboot) boot(found);
      return touch(found);
    },
  };
}

function touch(vm: SandboxVm): string {
  vm.updatedAt = Date.now();
  return vm.id;
}
