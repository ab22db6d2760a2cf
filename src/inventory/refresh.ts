import type { Compute, Project } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Known } from "./known.ts";
import { contentsOf, isSameProject } from "./packing.ts";
import { isSame, type Replica } from "./replica.ts";

/** A list this long counts as cut, so that it removes nothing. */
const maxProjects = 100_000;
/** Reads of a project that changes while it is read. */
const maxReads = 3;
/** Failures in a row, in random order: nothing can be read, not just one region. */
const hopeless = 50;

interface RefreshOptions {
  compute: Compute;
  known: Known;
  replica: Replica;
  log: Log;
  concurrency: number;
  /** Of the lease: nothing is written once it is lost. */
  token: string;
  /** The process is closing. */
  signal: AbortSignal;
  /** The rest stays unread. */
  isLate(): boolean;
}

interface Refreshed {
  /** The list of projects could not be read, or no project could. */
  failed: boolean;
  /** Why the list could not be read. */
  reason?: string | undefined;
  /** Names of projects that keep what was known of them. */
  unread: readonly string[];
}

/**
 * Reads every project and its VMs once, and writes what changed; known projects are read while the list is still loading.
 * A project is removed when a complete list omits it and a read of it is a 404 (decision 007). Undefined when it was
 * stopped or lost its lease.
 */
export async function readEverything(options: RefreshOptions): Promise<Refreshed | undefined> {
  const { compute, known, replica, log, concurrency, token, signal } = options;
  const done = new Set<string>();
  const unread = new Map<string, string>();
  let failuresInARow = 0;
  let leaseLost = false;
  let listFailed = false;
  let reason: string | undefined;
  const isOver = () =>
    leaseLost || listFailed || failuresInARow >= hopeless || options.isLate() || signal.aborted;

  /** False when another process changed it meanwhile; that is now known. */
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

  async function readVms(project: Project): Promise<void> {
    done.add(project.id);
    for (let reads = 0; reads < maxReads; reads++) {
      const before = known.entry(project.id);
      const vms = await compute.projects.vms(project.id, { signal });
      failuresInARow = 0;
      if (known.entry(project.id) !== before) continue;
      if (before && !before.dirty && known.agrees(project, vms)) return;
      if (await publish(project.id, contentsOf(project, vms))) return;
    }
  }

  /** An unreadable project stays as it was; Redis gets it too, in case it lost it. */
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
      return error instanceof ComputeError && error.kind === "not-found";
    }
  }

  async function read(project: Project): Promise<void> {
    try {
      if (project.type === "TEE_VM") return await readVms(project);
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
      return await compute.projects.listAll(maxProjects, { signal });
    } catch (error) {
      listFailed = true; // also stops the reads in progress
      if (!(error instanceof ComputeError)) throw error;
      reason = error.message;
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
  if (listFailed) return { failed: true, unread: [], reason };

  const inList = new Set(listed.map((project) => project.id));
  const vanished =
    list.length < maxProjects ? before.filter((project) => !inList.has(project.id)) : [];
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

  /** Its VMs may have been read before the list: the project itself may still differ. */
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

/**
 * Processes items, at most `width` at a time, and starts nothing more once `isOver` or after an error. `work` may call
 * `leave` before it ends to let another item start; at most twice the width is unfinished.
 */
export function createPool<T>(
  width: number,
  work: (item: T, leave: () => void) => Promise<void>,
  isOver: () => boolean,
) {
  const queue: T[] = [];
  let next = 0;
  let running = 0;
  let unfinished = 0;
  let broken: { error: unknown } | undefined;
  let waiting: PromiseWithResolvers<void> | undefined;

  const hasRoom = () => running < width && unfinished < 2 * width;

  function startMore(): void {
    while (hasRoom() && next < queue.length && !broken && !isOver()) {
      const item = queue[next];
      next += 1;
      if (item !== undefined) void start(item);
    }
    if (unfinished > 0 || !waiting) return;
    if (broken) waiting.reject(broken.error);
    else waiting.resolve();
  }

  async function start(item: T): Promise<void> {
    running += 1;
    unfinished += 1;
    let isHere = true;
    const leave = () => {
      if (isHere) running -= 1;
      isHere = false;
    };
    try {
      await work(item, () => {
        leave();
        startMore();
      });
    } catch (error) {
      broken ??= { error };
    }
    leave();
    unfinished -= 1;
    startMore();
  }

  return {
    add(items: Iterable<T>): void {
      for (const item of items) queue.push(item);
      startMore();
    },
    /** Resolves when nothing runs and nothing will start; rejects with the first error. */
    drained(): Promise<void> {
      waiting = Promise.withResolvers<void>();
      startMore();
      return waiting.promise;
    },
  };
}

function shuffle<T>(items: readonly T[]): T[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    const kept = mixed[last];
    const swapped = mixed[other];
    if (kept === undefined || swapped === undefined) continue;
    mixed[last] = swapped;
    mixed[other] = kept;
  }
  return mixed;
}
