import { fingerprintOf } from "../random.ts";

export interface VmSpecs {
  cpu: number;
  memory: number;
  disk: number;
}

/** How often the API had an effect on a VM. Edits behind the API's back don't count. */
export interface VmEffects {
  starts: number;
  stops: number;
  restarts: number;
  resizes: number;
  snapshots: number;
  restores: number;
  consoles: number;
}

export interface SandboxVm {
  id: string;
  projectId: string;
  name: string;
  status: string;
  region: string;
  specs: VmSpecs;
  ip: string;
  createdAt: number;
  updatedAt: number;
  attested: boolean;
  /** Set when it isn't the one that follows from the name. */
  measurement?: string | undefined;
  /** The report says something else than the record: drift. */
  reportMeasurement?: string | undefined;
  verified: boolean;
  /** Stands for what is on the disk. */
  content: string;
  bootCount: number;
  bootedAt: number;
  /** An operation runs; another one is a conflict. */
  busy: boolean;
  /** Undefined until the first: most VMs of a fleet are never touched. */
  effects?: VmEffects;
}

export interface SandboxProject {
  id: string;
  name: string;
  type: string;
  status: string;
  region: string;
  createdAt: number;
  updatedAt: number;
  specs?: VmSpecs | undefined;
  gitConfig?: object | undefined;
  vmIds: string[];
  /** Effects of the API. A seeded project has 0 creations. */
  creations: number;
  updates: number;
  deletions: number;
}

export interface SandboxSnapshot {
  id: string;
  vmId: string;
  name: string;
  specs: VmSpecs;
  content: string;
  measurement: string;
  createdAt: number;
}

export function noEffects(): VmEffects {
  return { starts: 0, stops: 0, restarts: 0, resizes: 0, snapshots: 0, restores: 0, consoles: 0 };
}

/** Remembered: a fleet is listed over and over, and what the service needs for it is not to be measured. */
const usualMeasurements = new Map<string, string>();
const maxRemembered = 100_000;

export function measurementOf(vm: SandboxVm): string {
  if (vm.measurement !== undefined) return vm.measurement;
  const known = usualMeasurements.get(vm.name);
  if (known !== undefined) return known;
  const measurement = fingerprintOf(`${vm.name} v1`);
  if (usualMeasurements.size < maxRemembered) usualMeasurements.set(vm.name, measurement);
  return measurement;
}

let lastTime = { at: 0, words: "" };

/** One after the other is often the same. */
function time(at: number): string {
  if (lastTime.at !== at || lastTime.words === "")
    lastTime = { at, words: new Date(at).toISOString() };
  return lastTime.words;
}

/** A VM as the service documents it. `updated_at` is only there when asked for: the document doesn't list it. */
export function vmRecord(vm: SandboxVm, withUpdatedAt: boolean): Record<string, unknown> {
  return {
    id: vm.id,
    project_id: vm.projectId,
    name: vm.name,
    status: vm.status,
    region: vm.region,
    specs: vm.specs,
    ip_address: vm.ip,
    created_at: time(vm.createdAt),
    ...(withUpdatedAt ? { updated_at: time(vm.updatedAt) } : {}),
    attestation: vm.attested
      ? { enabled: true, measurement: measurementOf(vm) }
      : { enabled: false },
  };
}

export function projectRecord(project: SandboxProject): Record<string, unknown> {
  return {
    id: project.id,
    name: project.name,
    type: project.type,
    status: project.status,
    region: project.region,
    created_at: time(project.createdAt),
    updated_at: time(project.updatedAt),
  };
}

export function snapshotRecord(snapshot: SandboxSnapshot): Record<string, unknown> {
  return {
    snapshot_id: snapshot.id,
    vm_id: snapshot.vmId,
    name: snapshot.name,
    created_at: time(snapshot.createdAt),
  };
}

/** A boot makes new evidence: the attestation's time moves. */
export function boot(vm: SandboxVm): void {
  vm.bootCount += 1;
  vm.bootedAt = Date.now();
}
