import type { EvidenceWeatherName } from "./evidence-weather.ts";
import type { Platform } from "../evidence/vendors.ts";
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
  /** What is started; what follows from the name where it isn't set. */
  image?: string | undefined;
  /** Set when it isn't the one that follows from image and CPUs. */
  measurement?: string | undefined;
  /** The report says something else than the record: drift. */
  reportMeasurement?: string | undefined;
  verified: boolean;
  /** Base64: the report that is given whatever the VM is now. */
  replayed?: string | undefined;
  /** What it runs on; Genoa where it isn't set. */
  platform?: Platform | undefined;
  /** The host can read its memory, and its evidence says so. */
  debug?: boolean | undefined;
  /** How its evidence is otherwise than it should be. */
  weather?: EvidenceWeatherName | undefined;
  /** Since when its CPU has no rest (ms); not at all where it isn't set. */
  busySince?: number | undefined;
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
  return vm.measurement ?? launchMeasurement(vm.image ?? `${vm.name} v1`, vm.specs.cpu);
}

/** Of image and CPUs, as processors measure a VM when it starts. */
export function launchMeasurement(image: string, cpus: number): string {
  const measured = `${image}, ${cpus} CPUs`;
  const known = usualMeasurements.get(measured);
  if (known !== undefined) return known;
  const measurement = fingerprintOf(measured);
  if (usualMeasurements.size < maxRemembered) usualMeasurements.set(measured, measurement);
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

/** The service says no. */
export class Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  constructor(status: number, code: string, message: string) {
    this.status = status;
    this.code = code;
    this.message = message;
  }
}
