import {
  gapsWords,
  type ListGaps,
  mayHide,
  type Project,
  type Vm,
  statusFacts,
  unreadable,
} from "../compute/compute.ts";
import type { NameMatch, KnownProject, KnownVm, Scope } from "./inventory.ts";
import { compareNames } from "../../text/compare-names.ts";
import { fold, plainForm } from "../../text/fold.ts";
import { compileGlob } from "../../text/glob.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";
import { createNameIndex } from "./names.ts";

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
function unreadableIn({ project, vms, gaps }: Contents): string | undefined {
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

/**
 * One project as this process knows it. Each change creates a new object, so that a change shows by
 * identity.
 */
export interface KnownEntry {
  contents: Contents;
  /**
   * The version in Redis: 0 when Redis has nothing of this project, -1 when it must be looked up.
   */
  version: number;
}

/**
 * Everything that is known, in memory, with indexes. Nothing here waits for another process; long
 * loops make pauses.
 */
export type KnownFleet = ReturnType<typeof createKnownFleet>;

export function createKnownFleet() {
  const followers = new Set<Follower>();
  const entries = new Map<string, KnownEntry>();
  const vmsById = new Map<string, KnownVm>();
  const vmNames = createNameIndex();
  const projectNames = createNameIndex();
  /** The parts that can't be read, by project ID. */
  const gaps = new Map<string, string>();
  let ordered: readonly KnownEntry[] | undefined;

  function set(entry: KnownEntry): void {
    const { project, vms } = entry.contents;
    const before = entries.get(project.id)?.contents;
    entries.set(project.id, entry);
    ordered = undefined;
    if (before === entry.contents) return;
    const short = unreadableIn(entry.contents);
    if (short === undefined) gaps.delete(project.id);
    else gaps.set(project.id, short);
    // Most changes are of statuses, and leave all names as they are.
    if (before && before.project.name !== project.name)
      projectNames.remove(before.project.name, project.id);
    if (before?.project.name !== project.name) projectNames.add(project.name, project.id);
    const stays = new Set<string>();
    for (const vm of vms) {
      stays.add(vm.id);
      const known = vmsById.get(vm.id);
      vmsById.set(vm.id, vm);
      if (known?.name === vm.name) continue;
      if (known) vmNames.remove(known.name, vm.id);
      vmNames.add(vm.name, vm.id);
    }
    for (const vm of before?.vms ?? []) if (!stays.has(vm.id)) leaveOut(vm);
    for (const follower of followers) follower.set(entry);
  }

  /** Forgets a VM, unless another project lists it now. */
  function leaveOut(vm: KnownVm): void {
    if (vmsById.get(vm.id) !== vm) return;
    vmsById.delete(vm.id);
    vmNames.remove(vm.name, vm.id);
  }

  function remove(projectId: string): void {
    const entry = entries.get(projectId);
    if (!entry) return;
    entries.delete(projectId);
    ordered = undefined;
    const { project, vms } = entry.contents;
    projectNames.remove(project.name, projectId);
    gaps.delete(projectId);
    for (const vm of vms) leaveOut(vm);
    for (const follower of followers) follower.remove(projectId);
  }

  /** All entries sorted by project name. */
  function inOrder(): readonly KnownEntry[] {
    ordered ??= [...entries.values()].toSorted((a, b) =>
      byName(a.contents.project, b.contents.project),
    );
    return ordered;
  }

  const vmsNamed = (name: string) => vmNames.idsOf(name).flatMap((id) => vmsById.get(id) ?? []);
  const projectsNamed = (name: string) =>
    projectNames.idsOf(name).flatMap((id) => entries.get(id)?.contents.project ?? []);

  /**
   * All VMs that `words` may mean, ignoring case: as a name, or as `project/name`. The slash may be
   * a wide one.
   */
  function vmsMeant(words: string): Meant<KnownVm>[] {
    const meant = vmsWritten(words);
    const plain = plainForm(words);
    return meant.length > 0 || plain === words ? meant : vmsWritten(plain);
  }

  function vmsWritten(words: string): Meant<KnownVm>[] {
    const meant = vmsNamed(words).map((it) => ({ it, isExact: it.name === words }));
    for (let slash = words.indexOf("/"); slash !== -1; slash = words.indexOf("/", slash + 1)) {
      const place = words.slice(0, slash);
      const name = words.slice(slash + 1);
      for (const vm of vmsNamed(name)) {
        const inId = vm.projectId === place;
        if (!inId && fold(vm.projectName) !== fold(place)) continue;
        meant.push({ it: vm, isExact: vm.name === name && (inId || vm.projectName === place) });
      }
    }
    return meant;
  }

  /**
   * VMs found by ID, by name, and by the name of their project, which is typed before a slash or
   * alone.
   */
  function* likelyVms(typed: string, most: number): Generator<KnownVm> {
    const byId = vmsById.get(plainForm(typed));
    if (byId) yield byId;
    for (const name of vmNames.containing(typed, most)) yield* vmsNamed(name);
    const [, place = typed, part = ""] = /^([^/]*)\/(.*)$/s.exec(plainForm(typed)) ?? [];
    for (const { id } of projectNames.containing(place, most).flatMap(projectsNamed))
      for (const vm of entries.get(id)?.contents.vms ?? [])
        if (fold(vm.name).includes(fold(part))) yield vm;
  }

  return {
    set,
    remove,
    /**
     * Tells the follower of every change from now on. By the time this resolves, it has also been
     * told of everything that exists.
     */
    async follow(follower: Follower): Promise<void> {
      followers.add(follower);
      const pause = pauseNowAndThen();
      for (const entry of entries.values()) {
        follower.set(entry);
        await pause();
      }
    },
    leave: (follower: Follower): void => void followers.delete(follower),
    entry: (projectId: string): KnownEntry | undefined => entries.get(projectId),
    entries: () => entries.values(),
    vm: (id: string): KnownVm | undefined => vmsById.get(id),
    /** The parts that can't be read, as a sentence for each project. */
    gaps: (): string[] => [...gaps.values()].toSorted(compareNames),
    count: () => ({ vms: vmsById.size, projects: entries.size }),
    findVm(words: string): NameMatch<KnownVm> | undefined {
      const meant = pickMatch(vmsById.get(words), vmsMeant(words));
      return meant ?? pickMatch(vmsById.get(plainForm(words)), []);
    },
    findProject(words: string): NameMatch<KnownProject> | undefined {
      const named = projectsNamed(words).map((it) => ({ it, isExact: it.name === words }));
      const meant = pickMatch(entries.get(words)?.contents.project, named);
      return meant ?? pickMatch(entries.get(plainForm(words))?.contents.project, []);
    },
    /** Case counts, unless nothing matches with it. */
    async matchVms(glob: string): Promise<KnownVm[]> {
      const textOf = plainForm(glob).includes("/")
        ? (vm: KnownVm) => `${vm.projectName}/${vm.name}`
        : (vm: KnownVm) => vm.name;
      const all = inOrder();
      const pause = pauseNowAndThen();
      const vmsThat = async (matches: (vm: KnownVm) => boolean) => {
        const vms: KnownVm[] = [];
        for (const { contents } of all) {
          for (const vm of contents.vms) if (matches(vm)) vms.push(vm);
          await pause();
        }
        return vms;
      };
      const exact = compileGlob(glob);
      const matching = await vmsThat((vm) => exact(textOf(vm)));
      if (matching.length > 0) return matching;
      const folded = compileGlob(fold(glob));
      return vmsThat((vm) => folded(fold(textOf(vm))));
    },
    suggestVms(typed: string, most: number): KnownVm[] {
      const vms = distinct(likelyVms(typed, most), most);
      if (vms.length > 0) return vms;
      const plain = plainForm(typed);
      const names = vmNames.near(plain.slice(plain.indexOf("/") + 1), most);
      return distinct(names.flatMap(vmsNamed), most);
    },
    suggestProjects(typed: string, most: number): KnownProject[] {
      const byId = entries.get(plainForm(typed))?.contents.project;
      const containing = projectNames.containing(typed, most);
      const names = containing.length > 0 ? containing : projectNames.near(typed, most);
      return distinct([...(byId ? [byId] : []), ...names.flatMap(projectsNamed)], most);
    },
    vms({ projectId }: { projectId?: string } = {}): KnownVm[] {
      const from = projectId === undefined ? inOrder() : [entries.get(projectId) ?? []].flat();
      return from.flatMap((entry) => entry.contents.vms);
    },
    projects: (): KnownProject[] => inOrder().map((entry) => entry.contents.project),
  };
}

/**
 * An ID takes precedence over every name, so that no name can pose as an ID. Then case counts,
 * unless nothing matches with it.
 */
function pickMatch<T extends Placed>(
  byId: T | undefined,
  meant: readonly Meant<T>[],
): NameMatch<T> | undefined {
  if (byId !== undefined) return { found: byId };
  const exact = meant.filter(({ isExact }) => isExact);
  const [first, ...others] = new Set((exact.length > 0 ? exact : meant).map(({ it }) => it));
  if (first === undefined) return undefined;
  if (others.length === 0) return { found: first };
  return { ambiguous: [first, ...others].toSorted(byPlace) };
}

type Placed = { id: string; projectName?: string };

/** Orders things of one name by their project, because the order of reading is left to chance. */
const byPlace = (a: Placed, b: Placed) =>
  compareNames(a.projectName ?? "", b.projectName ?? "") || compareNames(a.id, b.id);

interface Meant<T> {
  it: T;
  isExact: boolean;
}

function distinct<T>(all: Iterable<T>, most: number): T[] {
  const distinctItems = new Set<T>();
  for (const each of all) if (distinctItems.add(each).size >= most) break;
  return [...distinctItems];
}

/**
 * Scopes are teams, and what no team has. There are more only when a policy has hundreds of teams
 * whose members are all active.
 */
const maxScopes = 300;

interface Follower {
  set(entry: KnownEntry): void;
  remove(projectId: string): void;
}

/**
 * Keeps an inventory for each scope, with indexes of its own, so that a hidden VM or project
 * neither answers, nor fills a list of suggestions, nor takes time. Scopes follow what this process
 * knows. The least recently used scope is dropped first.
 */
export function createScopes(known: KnownFleet): (scope: Scope) => Promise<KnownFleet> {
  const scopes = new Map<string, { part: Promise<KnownFleet>; leave: () => void }>();

  function open(scope: Scope): { part: Promise<KnownFleet>; leave: () => void } {
    const part = createKnownFleet();
    const follower: Follower = {
      set(entry) {
        if (scope.sees(entry.contents.project)) part.set(entry);
        else part.remove(entry.contents.project.id);
      },
      remove: part.remove,
    };
    return {
      part: known.follow(follower).then(() => part),
      leave: () => known.leave(follower),
    };
  }

  return (scope) => {
    const opened = scopes.get(scope.key) ?? open(scope);
    scopes.delete(scope.key);
    scopes.set(scope.key, opened);
    const [oldest] = scopes;
    if (scopes.size > maxScopes && oldest) {
      oldest[1].leave();
      scopes.delete(oldest[0]);
    }
    return opened.part;
  };
}

/** The sign for a VM's or a project's status. An unknown status gets a question mark. */
export function statusSign(status: string): string {
  return statusFacts(status).sign;
}

/** The reasons why VMs fail attestation, by VM ID. */
export type Failing = ReadonlyMap<string, string>;

type Shown = { id: string; name: string; status: string };

/**
 * The status with its sign, or with the failed attestation if there is one: `🔴 RUNNING, measurement
 * matches no pin`.
 */
export function signed({ id, status }: Omit<Shown, "name">, failing: Failing = new Map()): string {
  const why = failing.get(id);
  return why === undefined ? `${statusSign(status)} ${status}` : `🔴 ${status}, ${why}`;
}

/** Sorts what is in trouble or fails attestation first, then by status. */
export const redFirst = (failing: Failing) => (a: Shown, b: Shown) => {
  const red = ({ id, status }: Shown) => Number(failing.has(id) || statusFacts(status).isAlarming);
  return red(b) - red(a) || byTrouble(a, b);
};

/** Sorts ERROR first, then changing, stopped, running. */
export function byTrouble(a: Omit<Shown, "id">, b: Omit<Shown, "id">): number {
  return rankOf(a) - rankOf(b) || byName(a, b);
}

const rankOf = ({ status }: Pick<Shown, "status">) => statusFacts(status).rank;

const byName = (a: { name: string }, b: { name: string }) => compareNames(a.name, b.name);

/** The first `most` items of a sort, in one pass. Sorting 100,000 VMs would block the process. */
export function firstOf<T>(all: readonly T[], most: number, order: (a: T, b: T) => number): T[] {
  let first: T[] = [];
  let bound: T | undefined;
  for (const each of all) {
    if (bound !== undefined && order(each, bound) >= 0) continue;
    first.push(each);
    if (first.length < most * 2) continue;
    first = first.toSorted(order).slice(0, most);
    bound = first.at(-1);
  }
  return first.toSorted(order).slice(0, most);
}

/** `3 RUNNING, 1 ERROR`, with most trouble first. */
export function countByStatus(
  all: readonly { id?: string; status: string }[],
  failing: Failing = new Map(),
): string {
  const failed = all.filter(({ id = "" }) => failing.has(id)).length;
  const counts = new Map<string, number>();
  for (const { status } of all) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .toSorted(([a], [b]) => statusFacts(a).rank - statusFacts(b).rank)
    .map(([status, count]) => `${count} ${status}`)
    .concat(failed === 0 ? [] : `🔴 ${failed} failing attestation`)
    .join(", ");
}
