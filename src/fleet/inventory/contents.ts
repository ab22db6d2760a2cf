import {
  type ListGaps,
  type Project,
  type Vm,
  gapsWords,
  mayHide,
  unreadable,
} from "../compute/compute.ts";
import { compareNames } from "../../text/compare-names.ts";
import type { KnownProject, KnownVm } from "./inventory.ts";

/**
 * One project with all its VMs, sorted by name: the unit that is read, stored, and compared.
 * Immutable.
 */
export interface Contents {
  project: KnownProject;
  vms: readonly KnownVm[];
  /** How the list of its VMs fell short of what the service has. Undefined when it didn't. */
  gaps?: Pick<ListGaps, "leftOut" | "isCut"> | undefined;
}

/**
 * The part of the service's records that lists and answers need. An omitted value is set to
 * undefined, because objects of one shape take less memory.
 */
export function contentsOf(
  seen: Project | KnownProject,
  vms: readonly (Vm | KnownVm)[],
  gaps?: Contents["gaps"],
): Contents {
  const { id, name, type, status, region, createdAt } = seen;
  const project = { id, name, type, status, region, createdAt } as KnownProject;
  const known = { project, vms: vms.map((vm) => knownVm(vm, project)).toSorted(byName) };
  if (!gaps || (gaps.leftOut.length === 0 && !gaps.isCut)) return known;
  const { leftOut, isCut } = gaps;
  return { ...known, gaps: { leftOut, isCut } };
}

/**
 * The contents of a project after its VMs were read. A VM that a gap in the list may hide isn't
 * gone: it stays, with the status `unreadable`.
 */
export function contentsRead(
  project: Project | KnownProject,
  vms: readonly Vm[],
  gaps: ListGaps | undefined,
  before: Contents | undefined,
): Contents {
  const old = new Map(before?.vms.map((vm) => [vm.id, vm]));
  const listed = vms.map((vm) => asCalledBefore(vm, old.get(vm.id)));
  for (const { id } of vms) old.delete(id);
  const hidden = [...old.values()].filter(({ name }) => mayHide(gaps, name));
  const kept = hidden.map((vm) => ({ ...vm, status: unreadable }));
  return contentsOf(asCalledBefore(project, before?.project), [...listed, ...kept], gaps);
}

/**
 * A record without a readable name or type keeps those it had, because rules and people refer to
 * them.
 */
export function asCalledBefore<T extends { id: string; name: string; type?: string }>(
  now: T,
  before: { name: string; type?: string } | undefined,
): T {
  if (!before) return now;
  const called = now.name === now.id ? { name: before.name } : {};
  return { ...now, ...called, ...(now.type === unreadable ? { type: before.type } : {}) };
}

/**
 * Describes the parts of a project that can't be read, in words for people. Undefined when
 * everything can.
 */
export function unreadableIn({ project, vms, gaps }: Contents): string | undefined {
  const without = vms.filter(({ status }) => status === unreadable).map(({ name }) => name);
  const more = without.length > 3 ? `, and ${without.length - 3} more` : "";
  const words = [
    ...(project.status === unreadable ? ["its status can't be read"] : []),
    ...(project.type === unreadable ? ["its type can't be read"] : []),
    ...(without.length > 0 ? [`no status of ${without.slice(0, 3).join(", ")}${more}`] : []),
    ...(gaps ? [gapsWords({ ...gaps, marked: [] }) ?? ""] : []),
  ];
  return words.length > 0 ? `${project.name}: ${words.join("; ")}` : undefined;
}

function knownVm(
  { id, name, status, region, createdAt, specs }: Vm | KnownVm,
  { id: projectId, name: projectName }: KnownProject,
): KnownVm {
  return { id, name, projectId, projectName, status, region, createdAt, specs } as KnownVm;
}

/** Whether both values would have the same JSON, found much faster than by writing it. */
export function isSame(now: unknown, before: unknown): boolean {
  if (now === before) return true;
  if (!isObject(now) || !isObject(before)) return false;
  const count = (value: object) => (Array.isArray(value) ? value.length : undefined);
  if (count(now) !== count(before)) return false;
  return (
    Object.keys(now).every((key) => isSame(now[key], before[key])) &&
    Object.keys(before).every((key) => now[key] !== undefined || before[key] === undefined)
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** The VMs of a project after one was read. Fields that its record omits stay as they were. */
export function withReadVm(vm: Vm, vms: readonly KnownVm[]): (KnownVm | Vm)[] {
  const before = vms.find(({ id }) => id === vm.id);
  const namedVm = asCalledBefore(vm, before);
  return before ? vms.map((old) => (old === before ? { ...old, ...namedVm } : old)) : [...vms, vm];
}

export const byName = (a: { name: string }, b: { name: string }): number =>
  compareNames(a.name, b.name);
