import { setTimeout as delay } from "node:timers/promises";
import type { Compute } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { within } from "../deadline.ts";
import { UserError } from "../errors.ts";
import { contentsOf, type Known } from "./known.ts";
import type { Seen } from "./inventory.ts";
import type { Replica } from "./replica.ts";

/** How long a person waits for newer knowledge: a dialog must open within three seconds of the command. */
const patienceMs = 1_500;
/** Between the starts of two refreshes for people, however many ask: a second, where the usual ones are a minute apart. */
const longestAgainMs = 1_000;
/** A larger fleet isn't read whole for one name: the answer says how old the list is. */
const maxProjects = 50;

interface SeekOptions {
  compute: Pick<Compute, "projects" | "vms">;
  known: Known;
  replica: Replica;
  note(seen: Seen): Promise<void>;
  /** Between the usual refreshes (ms). */
  refreshMs: number;
  /** One that begins after the call; false when another process is at it. */
  refresh(): Promise<boolean>;
}

/** Looks for what isn't known, before it is denied: others create VMs too. */
export function createSeeker({ compute, known, replica, note, refreshMs, refresh }: SeekOptions) {
  const againMs = Math.min(longestAgainMs, refreshMs / 20);
  let begunAt = -Infinity;
  let next: Promise<boolean> | undefined;

  /** Shared by all who ask before it begins. */
  async function begin(): Promise<boolean> {
    await delay(Math.max(0, begunAt + againMs - performance.now()), undefined, { ref: false });
    next = undefined;
    begunAt = performance.now();
    const isDone = await refresh().catch(() => false); // logged by the rounds, which meet the same
    if (!isDone) begunAt -= againMs * 0.8; // another process is at it, and began before
    return isDone;
  }

  /** Waits for a refresh that began after it was asked for. */
  async function upToDate({
    patience = patienceMs,
    evenLarge = false,
    askedAt = performance.now(),
  } = {}): Promise<void> {
    if (!evenLarge && known.count().projects > maxProjects) return;
    const leftMs = () => askedAt + patience - performance.now();
    for (let isOver = false; !isOver && leftMs() > 0;)
      isOver = await within(leftMs(), (next ??= begin()), () => true);
  }

  async function readVm(id: string): Promise<void> {
    const vm = await compute.vms.get(id);
    if (!known.entry(vm.projectId)) await readProject(vm.projectId);
    await note({ vm });
  }

  const readProject = async (id: string) => note({ project: await compute.projects.get(id) });

  /** For `project/name` or a glob of the kind: the VMs of the one project that it names. */
  async function readVmsOf(words: string, seen: Known): Promise<void> {
    const project = seen.findProject(words.split("/")[0] ?? "");
    if (!project || !("found" in project)) return upToDate();
    const { id } = project.found;
    const vms = await compute.projects.vms(id);
    await replica.change(id, (now) => now && contentsOf(now.project, vms));
  }

  return {
    upToDate,
    /** By ID with one read, else with a refresh; whether it is known then, the caller looks up. `seen`: what may be named. */
    async seek(
      kind: "vm" | "project",
      words: string,
      isKnown: () => boolean,
      seen: Known,
    ): Promise<void> {
      if (words.includes("/")) return quietly(readVmsOf(words, seen));
      const askedAt = performance.now();
      await quietly(kind === "vm" ? readVm(words) : readProject(words));
      if (!isKnown()) await upToDate({ askedAt });
    },
    /** What a glob may match. */
    seekMatching: (glob: string, seen: Known): Promise<void> =>
      glob.includes("/") ? quietly(readVmsOf(glob, seen)) : upToDate(),
  };
}

/** Not there, no possible ID, or the service is unreachable: then it isn't known. */
async function quietly(read: Promise<void>): Promise<void> {
  try {
    await read;
  } catch (error) {
    if (!(error instanceof ComputeError || error instanceof UserError)) throw error;
  }
}
