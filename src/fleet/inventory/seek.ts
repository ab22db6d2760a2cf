import { UserError } from "../../errors.ts";
import { plainForm } from "../../text/fold.ts";
import { type Compute, ComputeError, type ListGaps } from "../compute/compute.ts";
import { contentsRead } from "./contents.ts";
import type { KnownFleet } from "./known-fleet.ts";
import { noteRead } from "./note-read.ts";
import type { FleetRefresh } from "./refresh.ts";
import type { Replica } from "./replica.ts";

interface SeekOptions {
  compute: Compute;
  known: KnownFleet;
  replica: Replica;
  refresh: FleetRefresh;
}

/** Looks for something unknown before the answer is that it doesn't exist (decision 027). */
export class Seeker {
  readonly #on: SeekOptions;

  constructor(on: SeekOptions) {
    this.#on = on;
  }

  /**
   * Looks by ID with one read, or with a refresh if that `isDue`. `seen` is what the person may
   * see.
   */
  async seek(
    kind: "vm" | "project",
    words: string,
    { seen, isDue }: { seen: KnownFleet; isDue: () => Promise<boolean> },
  ): Promise<void> {
    const isKnown = () => (kind === "vm" ? seen.findVm(words) : seen.findProject(words));
    if (isKnown()) return;
    const plain = plainForm(words);
    if (plain.includes("/")) {
      if (await isDue()) await this.seekIn(plain, seen);
      return;
    }
    const askedAt = performance.now();
    await ignoringUnknown(kind === "vm" ? this.#readVm(plain) : this.#readProject(plain));
    if (!isKnown() && (await isDue())) await this.#on.refresh.upToDate(undefined, askedAt);
  }

  /** For `project/name`, or a glob of that kind: reads the VMs of the one project that it names. */
  async seekIn(words: string, seen: KnownFleet): Promise<void> {
    const project = seen.findProject(words.split("/")[0] ?? "");
    if (!project || !("record" in project)) return this.#on.refresh.upToDate();
    await ignoringUnknown(this.#readVmsOf(project.record.id));
  }

  async #readVm(id: string): Promise<void> {
    const { compute, known } = this.#on;
    const vm = await compute.vms.get(id, { onGaps: () => undefined });
    if (!known.entry(vm.projectId)) await this.#readProject(vm.projectId);
    await noteRead({ vm }, this.#on);
  }

  async #readProject(id: string): Promise<void> {
    const project = await this.#on.compute.projects.get(id, { onGaps: () => undefined });
    await noteRead({ project }, this.#on);
  }

  async #readVmsOf(projectId: string): Promise<void> {
    const { compute, replica } = this.#on;
    let gaps: ListGaps | undefined;
    const onGaps = (noted: ListGaps) => void (gaps = noted);
    const vms = await compute.projects.vms(projectId, { onGaps });
    await replica.change(projectId, (now) => now && contentsRead(now.project, vms, gaps, now));
  }
}

/**
 * Ignores that something doesn't exist, isn't a possible ID, or that the service is unreachable. It
 * stays unknown then.
 */
async function ignoringUnknown(read: Promise<void>): Promise<void> {
  try {
    await read;
  } catch (error) {
    if (!(error instanceof ComputeError || error instanceof UserError)) throw error;
  }
}
