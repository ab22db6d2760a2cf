import {
  type Compute,
  ComputeError,
  gapsWords,
  type ListGaps,
  mayHaveVms,
  type Project,
} from "../compute/compute.ts";
import { messageOf, UserError } from "../../errors.ts";
import { compareNames } from "../../text/compare-names.ts";
import type { Log } from "../../log/log.ts";
import { type Contents, asCalledBefore, contentsOf, contentsRead, isSame } from "./contents.ts";
import type { KnownEntry, KnownFleet } from "./known-fleet.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";
import type { Replica } from "./replica.ts";

/** A list this long counts as cut, so that it removes nothing. */
const maxProjects = 100_000;
/** How often a project is read that changes while it is read. */
const maxReads = 3;
/**
 * After this many failures in a row, in random order, nothing can be read at all; it isn't just one
 * region.
 */
const hopeless = 50;

export interface FleetReading {
  compute: Compute;
  known: KnownFleet;
  replica: Replica;
  log: Log;
  concurrency: number;
  /** Aborted when the process is closing. */
  signal: AbortSignal;
}

/**
 * Reads every project and its VMs once, and writes what changed. Known projects are read while the
 * list is still loading. A project is removed when a complete list omits it and a read of it
 * returns 404 (decision 007). Resolves with undefined when it was stopped. `failed`: no project
 * could be read, or the list couldn't be, for this `reason`. `unread`: names of projects that keep
 * what was known of them. `gaps`: what the list of projects lacks, in words.
 */
export async function readEverything(options: FleetReading) {
  const { compute, known, replica, log, concurrency, signal } = options;
  const done = new Set<string>();
  const unread = new Map<string, string>();
  let failuresInARow = 0;
  let reason: string | undefined;
  let gaps: string | undefined;
  const pause = pauseNowAndThen();
  const isOver = () => reason !== undefined || failuresInARow >= hopeless || signal.aborted;

  /** Writes a project unless it changed since `before`. Resolves with false when it did. */
  const publish = async (
    id: string,
    contents: Contents | undefined,
    before: KnownEntry | undefined,
  ) =>
    known.entry(id) === before &&
    (isSame(contents, before?.contents) || replica.write(id, contents, before?.version));

  async function readVms(project: Project): Promise<void> {
    for (let reads = 0; reads < maxReads; reads++) {
      const before = known.entry(project.id);
      const namedProject = asCalledBefore(project, before?.contents.project);
      let short: ListGaps | undefined;
      const onGaps = (listGaps: ListGaps) => void (short = listGaps);
      const vms = mayHaveVms(namedProject)
        ? await compute.projects.vms(project.id, { signal, onGaps })
        : [];
      if (mayHaveVms(namedProject)) failuresInARow = 0;
      await pause();
      if (
        await publish(project.id, contentsRead(namedProject, vms, short, before?.contents), before)
      )
        return;
    }
  }

  async function readProject(project: Project): Promise<void> {
    if (isOver()) return;
    done.add(project.id);
    try {
      await readVms(project);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ComputeError || error instanceof UserError)) throw error;
      failuresInARow += 1;
      unread.set(project.id, project.name);
      log.debug("inventory.unread", { projectId: project.id, reason: messageOf(error) });
      // The project's VMs stay as they were.
      const before = known.entry(project.id);
      const { project: was, vms = [], gaps: lastGaps } = before?.contents ?? {};
      await publish(project.id, contentsOf(asCalledBefore(project, was), vms, lastGaps), before);
    }
  }

  async function readList(): Promise<readonly Project[]> {
    try {
      const onGaps = (listGaps: ListGaps) => void (gaps = gapsWords(listGaps));
      const list = await compute.projects.listAll(maxProjects, { signal, onGaps });
      return [...new Map(list.map((project) => [project.id, project])).values()];
    } catch (error) {
      reason = messageOf(error); // This also stops the reads in progress.
      if (!(error instanceof ComputeError)) throw error;
      return [];
    }
  }

  async function vanish(project: Project): Promise<void> {
    const before = known.entry(project.id);
    if (isOver() || !before) return;
    const isGone = await compute.projects.get(project.id, { signal }).then(
      () => false,
      (error: unknown) => error instanceof ComputeError && error.kind === "not-found",
    );
    if (isGone && (await publish(project.id, undefined, before))) unread.delete(project.id);
  }

  const before = [...known.entries()].map((entry) => entry.contents.project);
  const withVms = before.filter((project) => mayHaveVms(project));
  const [list] = await Promise.all([readList(), inRandomOrder(withVms, concurrency, readProject)]);
  const rest = list.filter((project) => {
    const now = known.entry(project.id)?.contents.project;
    const listedProject = contentsOf(asCalledBefore(project, now), []).project;
    return !done.has(project.id) || !isSame(now, listedProject);
  });
  await inRandomOrder(rest, concurrency, readProject);
  if (signal.aborted) return undefined;
  if (reason !== undefined) return { failed: true, reason, unread: [] };
  const inList = new Set(list.map((project) => project.id));
  const vanished = before.filter((project) => !inList.has(project.id));
  if (list.length < maxProjects) await inRandomOrder(vanished, concurrency, vanish);
  if (signal.aborted) return undefined;
  for (const project of list) if (!done.has(project.id)) unread.set(project.id, project.name);
  const tried = list.filter((project) => mayHaveVms(project)).length;
  const failed = tried > 0 && unread.size >= tried;
  return { failed, reason, gaps, unread: [...unread.values()].toSorted(compareNames) };
}

/** Works on all items in random order, at most `width` at a time. */
async function inRandomOrder<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const mixed = items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .values();
  const worker = async () => {
    for (const { item } of mixed) await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
}
