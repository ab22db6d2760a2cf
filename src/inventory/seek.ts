import { setTimeout as delay } from "node:timers/promises";
import type { Compute, Vm } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { within } from "../deadline.ts";
import { UserError } from "../errors.ts";
import type { Seen } from "./inventory.ts";
import type { Known } from "./known.ts";

/** How long a person waits for newer knowledge: a dialog must open within three seconds of the command. */
const patienceMs = 1_500;
/** Between the starts of two refreshes for people, however many ask: a second, where the usual ones are a minute apart. */
const longestAgainMs = 1_000;
/** A larger fleet isn't read whole for one name: the answer says how old the list is. */
const maxProjects = 50;

interface SeekOptions {
  compute: Pick<Compute, "projects" | "vms">;
  known: Known;
  note(seen: Seen): Promise<void>;
  /** All VMs of a project, as just read. */
  noteVms(projectId: string, vms: readonly Vm[]): Promise<void>;
  /** Between the usual refreshes (ms). */
  refreshMs: number;
  /** One that begins after the call; false when another process is at it. */
  refresh(): Promise<boolean>;
}

/** Looks for what isn't known, before it is denied: others create VMs too. */
export function createSeeker({ compute, known, note, noteVms, refreshMs, refresh }: SeekOptions) {
  const againMs = Math.min(longestAgainMs, refreshMs / 20);
  let begunAt = -Infinity;
  let running: Promise<unknown> | undefined;

  /** Waits for a refresh that began after it was asked for; all who wait share it. */
  async function upToDate({
    patience = patienceMs,
    evenLarge = false,
    askedAt = performance.now(),
  } = {}): Promise<void> {
    const leftMs = () => askedAt + patience - performance.now();
    const wait = (ms: number) =>
      delay(Math.max(0, Math.min(ms, leftMs())), undefined, { ref: false });
    while (begunAt < askedAt && leftMs() > 0) {
      if (!evenLarge && known.count().projects > maxProjects) return;
      if (running) await within(leftMs(), running, () => undefined);
      else if (performance.now() < begunAt + againMs)
        await wait(begunAt + againMs - performance.now());
      else running = begin();
    }
    if (running) await within(leftMs(), running, () => undefined);
  }

  async function begin(): Promise<void> {
    begunAt = performance.now();
    try {
      // Another process that is at it began before
      if (!(await refresh())) begunAt -= againMs * 0.8;
    } catch {
      // Logged by the rounds, which meet the same
    } finally {
      running = undefined;
    }
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
    await noteVms(project.found.id, await compute.projects.vms(project.found.id));
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
