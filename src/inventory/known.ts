import type { Project, Vm } from "../compute/compute.ts";
import type { Found, KnownProject, KnownVm } from "./inventory.ts";
import { fold, compileGlob } from "../text/glob.ts";
import { createNameIndex, type NameIndex } from "./name-index.ts";
import { byName, type Contents, isSameProject, isSameVm } from "./packing.ts";

/** What this process knows of one project. A new object at each change, so that changes show by identity. */
interface Entry {
  contents: Contents;
  /** Its version in Redis, 0 when it isn't there. */
  version: number;
  /** Not yet written to Redis. */
  dirty: boolean;
}

/** Everything known, in memory, with its indexes. Synchronous. */
export type Known = ReturnType<typeof createKnown>;

export function createKnown() {
  const followers = new Set<{ set(entry: Entry): void; remove(projectId: string): void }>();
  const entries = new Map<string, Entry>();
  const vmsById = new Map<string, KnownVm>();
  const vmNames = createNameIndex();
  const projectNames = createNameIndex();
  let ordered: readonly Entry[] | undefined;

  function set(entry: Entry): void {
    const { project, vms } = entry.contents;
    const before = entries.get(project.id)?.contents;
    entries.set(project.id, entry);
    ordered = undefined;
    if (before === entry.contents) return;
    for (const follower of followers) follower.set(entry);
    if (before?.project.name !== project.name) {
      if (before) projectNames.remove(before.project.name, project.id);
      projectNames.add(project.name, project.id);
    }
    for (const vm of vms) {
      const was = vmsById.get(vm.id);
      vmsById.set(vm.id, vm);
      if (was?.name === vm.name) continue;
      if (was) vmNames.remove(was.name, was.id);
      vmNames.add(vm.name, vm.id);
    }
    if (before) forget(before.vms, project.id, new Set(vms.map((vm) => vm.id)));
  }

  /** A VM that another project now lists stays known. */
  function forget(vms: readonly KnownVm[], projectId: string, except: ReadonlySet<string>): void {
    for (const { id } of vms) {
      const now = vmsById.get(id);
      if (now === undefined || now.projectId !== projectId || except.has(id)) continue;
      vmsById.delete(id);
      vmNames.remove(now.name, id);
    }
  }

  function remove(projectId: string): void {
    const entry = entries.get(projectId);
    if (!entry) return;
    entries.delete(projectId);
    ordered = undefined;
    for (const follower of followers) follower.remove(projectId);
    projectNames.remove(entry.contents.project.name, projectId);
    forget(entry.contents.vms, projectId, new Set());
  }

  /** By project name. */
  function inOrder(): readonly Entry[] {
    ordered ??= [...entries.values()].toSorted((a, b) =>
      byName(a.contents.project, b.contents.project),
    );
    return ordered;
  }

  const vmsNamed = (name: string) => pick(vmNames.idsOf(name), (id) => vmsById.get(id));
  const projectsNamed = (name: string) =>
    pick(projectNames.idsOf(name), (id) => entries.get(id)?.contents.project);

  /** All VMs that `words` may mean, ignoring case, as a name or as `project/name`. */
  function vmsMeant(words: string): { vm: KnownVm; exact: boolean }[] {
    const meant = vmsNamed(words).map((vm) => ({ vm, exact: vm.name === words }));
    for (let slash = words.indexOf("/"); slash !== -1; slash = words.indexOf("/", slash + 1)) {
      const place = words.slice(0, slash);
      const name = words.slice(slash + 1);
      for (const vm of vmsNamed(name)) {
        const inId = vm.projectId === place;
        if (!inId && fold(vm.projectName) !== fold(place)) continue;
        meant.push({ vm, exact: vm.name === name && (inId || vm.projectName === place) });
      }
    }
    return meant;
  }

  return {
    set,
    remove,
    /** Tells of everything now and of every change from now on; what it returns ends that. */
    follow(follower: { set(entry: Entry): void; remove(projectId: string): void }): () => void {
      for (const entry of entries.values()) follower.set(entry);
      followers.add(follower);
      return () => void followers.delete(follower);
    },
    entry: (projectId: string): Entry | undefined => entries.get(projectId),
    entries: (): Iterable<Entry> => entries.values(),
    vm: (id: string): KnownVm | undefined => vmsById.get(id),
    count: () => ({ vms: vmsById.size, projects: entries.size }),
    tidy(): void {
      vmNames.tidy();
      projectNames.tidy();
    },

    /** Whether a project was read unchanged. */
    agrees(project: Project, vms: readonly Vm[]): boolean {
      const contents = entries.get(project.id)?.contents;
      if (!contents || contents.vms.length !== vms.length) return false;
      return (
        isSameProject(contents.project, project) &&
        vms.every((vm) => isSameVm(vmsById.get(vm.id), vm, project.id))
      );
    },

    /** An ID beats every name, so that no name can pose as an ID. */
    findVm(words: string): Found<KnownVm> | undefined {
      const byId = vmsById.get(words);
      if (byId) return { found: byId };
      const meant = vmsMeant(words);
      const exact = meant.filter((candidate) => candidate.exact);
      return one((exact.length > 0 ? exact : meant).map(({ vm }) => vm));
    },
    findProject(words: string): Found<KnownProject> | undefined {
      const byId = entries.get(words)?.contents.project;
      if (byId) return { found: byId };
      const named = projectsNamed(words);
      const exact = named.filter((project) => project.name === words);
      return one(exact.length > 0 ? exact : named);
    },
    /** Case counts, unless nothing matches with it. */
    matchVms(glob: string): KnownVm[] {
      const textOf = glob.includes("/")
        ? (vm: KnownVm) => `${vm.projectName}/${vm.name}`
        : (vm: KnownVm) => vm.name;
      const all = inOrder().flatMap((entry) => entry.contents.vms);
      const exact = compileGlob(glob);
      const matching = all.filter((vm) => exact(textOf(vm)));
      if (matching.length > 0) return matching;
      const folded = compileGlob(fold(glob));
      return all.filter((vm) => folded(fold(textOf(vm))));
    },
    suggestVms(typed: string, most: number): KnownVm[] {
      const found = new Set<KnownVm>();
      const take = (vms: Iterable<KnownVm>): boolean => {
        for (const vm of vms) {
          if (found.size >= most) return true;
          found.add(vm);
        }
        return found.size >= most;
      };
      const byId = vmsById.get(typed);
      if (byId) take([byId]);
      if (typed === "") {
        for (const entry of inOrder()) if (take(entry.contents.vms)) break;
        return [...found];
      }
      const inProjects = (place: string, part: string) => {
        const wanted = fold(part);
        for (const projectName of projectNames.containing(place, most)) {
          for (const project of projectsNamed(projectName)) {
            const vms = entries.get(project.id)?.contents.vms ?? [];
            if (take(wanted === "" ? vms : vms.filter((vm) => fold(vm.name).includes(wanted))))
              return;
          }
        }
      };
      for (const name of vmNames.containing(typed, most))
        if (take(vmsNamed(name))) return [...found];
      const slash = typed.indexOf("/");
      if (slash === -1) inProjects(typed, "");
      else inProjects(typed.slice(0, slash), typed.slice(slash + 1));
      if (found.size > 0) return [...found];
      for (const name of vmNames.near(slash === -1 ? typed : typed.slice(slash + 1), most)) {
        if (take(vmsNamed(name))) break;
      }
      return [...found];
    },
    suggestProjects(typed: string, most: number): KnownProject[] {
      if (typed === "")
        return inOrder()
          .slice(0, most)
          .map((entry) => entry.contents.project);
      const byId = entries.get(typed)?.contents.project;
      const names = likely(projectNames, typed, most);
      return [...new Set([...(byId ? [byId] : []), ...names.flatMap(projectsNamed)])].slice(
        0,
        most,
      );
    },
    vms(filter: { projectId?: string; status?: string } = {}): KnownVm[] {
      const { projectId, status } = filter;
      const from = projectId === undefined ? inOrder() : pick([projectId], (id) => entries.get(id));
      const all = from.flatMap((entry) => entry.contents.vms);
      return status === undefined ? all : all.filter((vm) => vm.status === status);
    },
    projects: (): KnownProject[] => inOrder().map((entry) => entry.contents.project),
  };
}

function likely(names: NameIndex, typed: string, most: number): string[] {
  const containing = names.containing(typed, most);
  return containing.length > 0 ? containing : names.near(typed, most);
}

function one<T>(candidates: readonly T[]): Found<T> | undefined {
  const [first, ...others] = new Set(candidates);
  if (first === undefined) return undefined;
  return others.length === 0 ? { found: first } : { ambiguous: [first, ...others] };
}

function pick<T>(ids: Iterable<string>, get: (id: string) => T | undefined): T[] {
  const found: T[] = [];
  for (const id of ids) {
    const value = get(id);
    if (value !== undefined) found.push(value);
  }
  return found;
}
