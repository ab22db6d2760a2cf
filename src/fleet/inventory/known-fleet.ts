import { compareNames } from "../../text/compare-names.ts";
import { fold, plainForm } from "../../text/fold.ts";
import { compileGlob } from "../../text/glob.ts";
import { type Contents, byName, unreadableIn } from "./contents.ts";
import type { KnownProject, KnownVm, NameMatch } from "./inventory.ts";
import { createNameIndex } from "./names.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";

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

export interface Follower {
  set(entry: KnownEntry): void;
  remove(projectId: string): void;
}

/**
 * Everything that is known, in memory, with indexes. Nothing here waits for another process; long
 * loops make pauses.
 */
export class KnownFleet {
  readonly #followers = new Set<Follower>();
  readonly #entries = new Map<string, KnownEntry>();
  readonly #vmsById = new Map<string, KnownVm>();
  readonly #vmNames = createNameIndex();
  readonly #projectNames = createNameIndex();
  /** The parts that can't be read, by project ID. */
  readonly #gaps = new Map<string, string>();
  #ordered: readonly KnownEntry[] | undefined;

  // Changes

  set(entry: KnownEntry): void {
    const { project, vms } = entry.contents;
    const before = this.#entries.get(project.id)?.contents;
    this.#entries.set(project.id, entry);
    this.#ordered = undefined;
    if (before === entry.contents) return;
    const short = unreadableIn(entry.contents);
    if (short === undefined) this.#gaps.delete(project.id);
    else this.#gaps.set(project.id, short);
    // Most changes are of statuses, and leave all names as they are.
    if (before && before.project.name !== project.name)
      this.#projectNames.remove(before.project.name, project.id);
    if (before?.project.name !== project.name) this.#projectNames.add(project.name, project.id);
    const stays = new Set<string>();
    for (const vm of vms) {
      stays.add(vm.id);
      const known = this.#vmsById.get(vm.id);
      this.#vmsById.set(vm.id, vm);
      if (known?.name === vm.name) continue;
      if (known) this.#vmNames.remove(known.name, vm.id);
      this.#vmNames.add(vm.name, vm.id);
    }
    for (const vm of before?.vms ?? []) if (!stays.has(vm.id)) this.#leaveOut(vm);
    for (const follower of this.#followers) follower.set(entry);
  }

  remove(projectId: string): void {
    const entry = this.#entries.get(projectId);
    if (!entry) return;
    this.#entries.delete(projectId);
    this.#ordered = undefined;
    const { project, vms } = entry.contents;
    this.#projectNames.remove(project.name, projectId);
    this.#gaps.delete(projectId);
    for (const vm of vms) this.#leaveOut(vm);
    for (const follower of this.#followers) follower.remove(projectId);
  }

  /** Forgets a VM, unless another project lists it now. */
  #leaveOut(vm: KnownVm): void {
    if (this.#vmsById.get(vm.id) !== vm) return;
    this.#vmsById.delete(vm.id);
    this.#vmNames.remove(vm.name, vm.id);
  }

  /**
   * Tells the follower of every change from now on. By the time this resolves, it has also been
   * told of everything that exists.
   */
  async follow(follower: Follower): Promise<void> {
    this.#followers.add(follower);
    const pause = pauseNowAndThen();
    for (const entry of this.#entries.values()) {
      follower.set(entry);
      await pause();
    }
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
  }

  // Entries, changes, and followers

  entry(projectId: string): KnownEntry | undefined {
    return this.#entries.get(projectId);
  }

  entries(): MapIterator<KnownEntry> {
    return this.#entries.values();
  }

  vm(id: string): KnownVm | undefined {
    return this.#vmsById.get(id);
  }

  vms({ projectId }: { projectId?: string } = {}): KnownVm[] {
    const entries =
      projectId === undefined ? this.#inOrder() : [this.#entries.get(projectId) ?? []].flat();
    return entries.flatMap(({ contents }) => contents.vms);
  }

  projects(): KnownProject[] {
    return this.#inOrder().map(({ contents }) => contents.project);
  }

  count(): { vms: number; projects: number } {
    return { vms: this.#vmsById.size, projects: this.#entries.size };
  }

  /** The parts that can't be read, as a sentence for each project. */
  gaps(): string[] {
    return [...this.#gaps.values()].toSorted(compareNames);
  }

  /** All entries sorted by project name. */
  #inOrder(): readonly KnownEntry[] {
    this.#ordered ??= [...this.#entries.values()].toSorted((a, b) =>
      byName(a.contents.project, b.contents.project),
    );
    return this.#ordered;
  }

  // Finding by words

  findVm(words: string): NameMatch<KnownVm> | undefined {
    const meant = pickMatch(this.#vmsById.get(words), this.#vmsMeant(words));
    return meant ?? pickMatch(this.#vmsById.get(plainForm(words)), []);
  }

  findProject(words: string): NameMatch<KnownProject> | undefined {
    const named = this.#projectsNamed(words).map((item) => ({
      item,
      isExact: item.name === words,
    }));
    const meant = pickMatch(this.#entries.get(words)?.contents.project, named);
    return meant ?? pickMatch(this.#entries.get(plainForm(words))?.contents.project, []);
  }

  /** Case counts, unless nothing matches with it. */
  async matchVms(glob: string): Promise<KnownVm[]> {
    const textOf = plainForm(glob).includes("/")
      ? (vm: KnownVm) => `${vm.projectName}/${vm.name}`
      : (vm: KnownVm) => vm.name;
    const exact = compileGlob(glob);
    const matching = await this.#vmsThat((vm) => exact(textOf(vm)));
    if (matching.length > 0) return matching;
    const folded = compileGlob(fold(glob));
    return this.#vmsThat((vm) => folded(fold(textOf(vm))));
  }

  suggestVms(typed: string, most: number): KnownVm[] {
    const vms = distinct(this.#likelyVms(typed, most), most);
    if (vms.length > 0) return vms;
    const plain = plainForm(typed);
    const names = this.#vmNames.near(plain.slice(plain.indexOf("/") + 1), most);
    return distinct(
      names.flatMap((name) => this.#vmsNamed(name)),
      most,
    );
  }

  suggestProjects(typed: string, most: number): KnownProject[] {
    const byId = this.#entries.get(plainForm(typed))?.contents.project;
    const containing = this.#projectNames.containing(typed, most);
    const names = containing.length > 0 ? containing : this.#projectNames.near(typed, most);
    const named = names.flatMap((name) => this.#projectsNamed(name));
    return distinct([...(byId ? [byId] : []), ...named], most);
  }

  #vmsNamed(name: string): KnownVm[] {
    return this.#vmNames.idsOf(name).flatMap((id) => this.#vmsById.get(id) ?? []);
  }

  #projectsNamed(name: string): KnownProject[] {
    return this.#projectNames
      .idsOf(name)
      .flatMap((id) => this.#entries.get(id)?.contents.project ?? []);
  }

  async #vmsThat(matches: (vm: KnownVm) => boolean): Promise<KnownVm[]> {
    const vms: KnownVm[] = [];
    const pause = pauseNowAndThen();
    for (const { contents } of this.#inOrder()) {
      for (const vm of contents.vms) if (matches(vm)) vms.push(vm);
      await pause();
    }
    return vms;
  }

  /**
   * All VMs that `words` may mean, ignoring case: as a name, or as `project/name`. The slash may be
   * a wide one.
   */
  #vmsMeant(words: string): Meant<KnownVm>[] {
    const meant = this.#vmsWritten(words);
    const plain = plainForm(words);
    return meant.length > 0 || plain === words ? meant : this.#vmsWritten(plain);
  }

  #vmsWritten(words: string): Meant<KnownVm>[] {
    const meant = this.#vmsNamed(words).map((item) => ({ item, isExact: item.name === words }));
    for (let slash = words.indexOf("/"); slash !== -1; slash = words.indexOf("/", slash + 1)) {
      const place = words.slice(0, slash);
      const name = words.slice(slash + 1);
      for (const vm of this.#vmsNamed(name)) {
        const inId = vm.projectId === place;
        if (!inId && fold(vm.projectName) !== fold(place)) continue;
        const isExact = vm.name === name && (inId || vm.projectName === place);
        meant.push({ item: vm, isExact });
      }
    }
    return meant;
  }

  /**
   * VMs found by ID, by name, and by the name of their project, which is typed before a slash or
   * alone.
   */
  *#likelyVms(typed: string, most: number): Generator<KnownVm> {
    const byId = this.#vmsById.get(plainForm(typed));
    if (byId) yield byId;
    for (const name of this.#vmNames.containing(typed, most)) yield* this.#vmsNamed(name);
    const [, place = typed, part = ""] = /^([^/]*)\/(.*)$/s.exec(plainForm(typed)) ?? [];
    const names = this.#projectNames.containing(place, most);
    for (const { id } of names.flatMap((name) => this.#projectsNamed(name)))
      for (const vm of this.#entries.get(id)?.contents.vms ?? [])
        if (fold(vm.name).includes(fold(part))) yield vm;
  }
}

/**
 * An ID takes precedence over every name, so that no name can pose as an ID. Then case counts,
 * unless nothing matches with it.
 */
function pickMatch<T extends Placed>(
  byId: T | undefined,
  meant: readonly Meant<T>[],
): NameMatch<T> | undefined {
  if (byId !== undefined) return { record: byId };
  const exact = meant.filter(({ isExact }) => isExact);
  const [first, ...others] = new Set((exact.length > 0 ? exact : meant).map(({ item }) => item));
  if (first === undefined) return undefined;
  if (others.length === 0) return { record: first };
  return { ambiguous: [first, ...others].toSorted(byPlace) };
}

type Placed = { id: string; projectName?: string };

/** Orders things of one name by their project, because the order of reading is left to chance. */
const byPlace = (a: Placed, b: Placed) =>
  compareNames(a.projectName ?? "", b.projectName ?? "") || compareNames(a.id, b.id);

interface Meant<T> {
  item: T;
  isExact: boolean;
}

function distinct<T>(all: Iterable<T>, most: number): T[] {
  const distinctItems = new Set<T>();
  for (const each of all) if (distinctItems.add(each).size >= most) break;
  return [...distinctItems];
}
