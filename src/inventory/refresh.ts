import type { Compute, Project } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Known } from "./known.ts";
import { contentsOf, isSameProject } from "./packing.ts";
import { createPool, shuffle } from "./pool.ts";
import { isSame, type Replica } from "./replica.ts";

/** More projects than this are not expected; a list that long counts as cut, so nothing is removed for its sake. */
const mostProjects = 100_000;
/** A project that changes while it is read is read again this often. */
const mostReads = 3;
/** In random order, so many failures in a row mean that nothing can be read, not that one region is away. */
const hopeless = 50;

export interface RefreshOptions {
  compute: Compute;
  known: Known;
  replica: Replica;
  log: Log;
  concurrency: number;
  /** Of the lease: nothing is written once it is lost. */
  token: string;
  /** The process is closing. */
  signal: AbortSignal;
  /** It has taken so long that what is left is left unread. */
  isLate(): boolean;
}

export interface Refreshed {
  /** The list of projects could not be read, or no project could. */
  failed: boolean;
  /** Names of projects that keep what was known of them. */
  unread: readonly string[];
}

/**
 * Reads every project and its VMs once, and writes what changed. While the list is on its way, the projects known from
 * last time are read already. A project is removed when the list came without it and asking for it is a 404: a list
 * whose pages shift, a list that failed, or a service that answers 404 to everything, removes nothing.
 * Undefined when it was stopped or lost its lease.
 */
export async function readEverything(options: RefreshOptions): Promise<Refreshed | undefined> {
  const { compute, known, replica, log, concurrency, token, signal } = options;
  const done = new Set<string>();
  const unread = new Map<string, string>();
  let failuresInARow = 0;
  let leaseLost = false;
  let listFailed = false;
  const isOver = () =>
    leaseLost || listFailed || failuresInARow >= hopeless || options.isLate() || signal.aborted;

  /** False when someone else changed it meanwhile, and what they wrote is known now. */
  async function publish(
    projectId: string,
    next: ReturnType<typeof contentsOf> | undefined,
  ): Promise<boolean> {
    const entry = known.entry(projectId);
    if (entry ? isSame(next, entry.contents) && !entry.dirty : !next) return true;
    const outcome = await replica.write(projectId, next, entry?.version ?? 0, token);
    if (outcome === "lease lost") leaseLost = true;
    return outcome !== "changed";
  }

  async function readVms(project: Project, leave: () => void): Promise<void> {
    done.add(project.id);
    for (let reads = 0; reads < mostReads; reads++) {
      const before = known.entry(project.id);
      const isSameThen = before && !before.dirty && isSameProject(before.contents.project, project);
      const mark = isSameThen ? before.mark : undefined;
      // oxlint-disable-next-line no-await-in-loop -- one after the other is the point
      const answer = await compute.projects.vmsUnless(mark, project.id, {
        signal,
        onAnswer: leave,
      });
      failuresInARow = 0;
      if (answer === "same") {
        if (known.entry(project.id) === before) return;
      } else if (isSameThen && known.agrees(project, answer.vms)) {
        before.mark = answer.mark;
        return;
      } else if (
        known.entry(project.id) === before &&
        (await publish(project.id, contentsOf(project, answer.vms)))
      )
        return;
    }
  }

  /** What can't be read stays as it was; Redis gets it too, should it have lost it. */
  async function keep(project: Project, error: unknown): Promise<void> {
    failuresInARow += 1;
    unread.set(project.id, project.name);
    log.debug("inventory.unread", { projectId: project.id, reason: messageOf(error) });
    await publish(project.id, contentsOf(project, known.entry(project.id)?.contents.vms ?? []));
  }

  async function isGone(projectId: string): Promise<boolean> {
    try {
      await compute.projects.get(projectId, { signal });
      return false;
    } catch (error) {
      return isNotFound(error);
    }
  }

  async function read(project: Project, leave: () => void): Promise<void> {
    try {
      if (project.type === "TEE_VM") return await readVms(project, leave);
      done.add(project.id);
      await publish(project.id, contentsOf(project, []));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ComputeError || error instanceof UserError)) throw error;
      await keep(project, error);
    }
  }

  async function readList(): Promise<readonly Project[]> {
    try {
      return await compute.projects.listAll({}, mostProjects, { signal, onPage: queue });
    } catch (error) {
      listFailed = true; // which also stops the reading that goes on meanwhile
      if (!(error instanceof ComputeError)) throw error;
      if (!signal.aborted) log.warn("inventory.list-failed", { reason: error.message });
      return [];
    }
  }

  const queued = new Set<string>();
  const pool = createPool(concurrency, read, isOver);
  function queue(projects: readonly Project[]): void {
    const fresh = projects.filter((project) => !queued.has(project.id));
    for (const project of fresh) queued.add(project.id);
    pool.add(shuffle(fresh));
  }

  const before = [...known.entries()].map((entry) => entry.contents.project);
  queue(before.filter((project) => project.type === "TEE_VM"));
  const list = await readList();
  const listed = [...new Map(list.map((project) => [project.id, project])).values()];
  queue(listed);
  await pool.drained();
  if (leaseLost || signal.aborted) return undefined;
  if (listFailed) return { failed: true, unread: [] };

  const inList = new Set(listed.map((project) => project.id));
  const vanished =
    list.length < mostProjects ? before.filter((project) => !inList.has(project.id)) : [];
  const rest = createPool(concurrency, settle, isOver);
  rest.add(listed);
  rest.add(vanished);
  await rest.drained();
  if (leaseLost || signal.aborted) return undefined;
  for (const project of listed) if (!done.has(project.id)) unread.set(project.id, project.name);
  const tried = listed.filter((project) => project.type === "TEE_VM").length;
  return { failed: tried > 0 && unread.size >= tried, unread: [...unread.values()].toSorted() };

  async function settle(project: Project): Promise<void> {
    await (inList.has(project.id) ? rename(project) : vanish(project));
  }

  /** Its VMs may have been read before the list came: the project itself may still differ. */
  async function rename(project: Project): Promise<void> {
    const entry = known.entry(project.id);
    if (!entry || (!entry.dirty && isSameProject(entry.contents.project, project))) return;
    await publish(project.id, contentsOf(project, entry.contents.vms));
  }

  async function vanish(project: Project): Promise<void> {
    const entry = known.entry(project.id);
    if (!entry) return;
    if (!(await isGone(project.id))) {
      await publish(project.id, entry.contents);
    } else if (await publish(project.id, undefined)) {
      unread.delete(project.id);
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof ComputeError && error.kind === "not-found";
}
