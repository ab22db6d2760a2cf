import {
  measurementOf,
  noEffects,
  type SandboxProject,
  type SandboxVm,
  type VmEffects,
  type VmSpecs,
} from "./records.ts";
import type { World } from "./world.ts";

/** A VM as it really is, and how often the API had an effect on it. */
export interface VmTruth extends VmEffects {
  id: string;
  name: string;
  projectId: string;
  status: string;
  specs: VmSpecs;
  measurement: string;
  content: string;
  bootCount: number;
  bootedAt: number;
  busy: boolean;
  gone: boolean;
}

export interface ProjectTruth {
  id: string;
  name: string;
  type: string;
  status: string;
  vmIds: readonly string[];
  creations: number;
  updates: number;
  deletions: number;
  gone: boolean;
}

export interface Truth {
  vms: Record<string, VmTruth>;
  projects: Record<string, ProjectTruth>;
  snapshots: Record<string, { id: string; vmId: string; name: string }>;
}

/** `touched`: only what the API had an effect on. */
export function truthOf(world: World, only: { touched?: boolean } = {}): Truth {
  const truth: Truth = { vms: {}, projects: {}, snapshots: {} };
  const takeVm = (vm: SandboxVm, gone: boolean) => {
    if (!only.touched || vm.effects) truth.vms[vm.id] = vmTruth(vm, gone);
  };
  const takeProject = (it: SandboxProject, gone: boolean) => {
    if (!only.touched || it.creations + it.updates + it.deletions > 0)
      truth.projects[it.id] = projectTruth(it, gone);
  };
  for (const vm of world.graves.vms) takeVm(vm, true);
  for (const vm of world.vms.values()) takeVm(vm, false);
  for (const project of world.graves.projects) takeProject(project, true);
  for (const project of world.projects.values()) takeProject(project, false);
  for (const { id, vmId, name } of world.snapshots.values())
    truth.snapshots[id] = { id, vmId, name };
  return truth;
}

export function vmTruth(vm: SandboxVm, gone: boolean): VmTruth {
  const { id, name, projectId, status, specs, content, bootCount, bootedAt, busy } = vm;
  const effects = vm.effects ?? noEffects();
  return {
    id,
    name,
    projectId,
    status,
    specs,
    content,
    bootCount,
    bootedAt,
    busy,
    gone,
    measurement: measurementOf(vm),
    ...effects,
  };
}

export function projectTruth(project: SandboxProject, gone: boolean): ProjectTruth {
  const { id, name, type, status, vmIds, creations, updates, deletions } = project;
  return { id, name, type, status, vmIds: [...vmIds], creations, updates, deletions, gone };
}
