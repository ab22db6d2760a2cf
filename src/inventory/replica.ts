import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Known } from "./known.ts";
import { type Contents, pack } from "./packing.ts";
import type { Head, InventoryStore } from "./store.ts";

/** Edits that keep meeting those of others are given up: the next refresh brings the same. */
const maxTries = 20;

/** What a project is after what was just seen; undefined when it is gone, or isn't known and can't be made up. */
type Edit = (now: Contents | undefined) => Contents | undefined;

/**
 * This process's copy of what Redis holds. `sync` takes over what others wrote; `change` and `write` write, and notice
 * when someone else was first. What is known is never dropped because Redis is empty or away.
 */
export type Replica = ReturnType<typeof createReplica>;

export function createReplica({
  store,
  known,
  log,
}: {
  store: InventoryStore;
  known: Known;
  log: Log;
}) {
  let head: Head = {
    epoch: undefined,
    version: 0,
    refreshedAt: undefined,
    failed: false,
    unread: [],
  };
  let reachable = false;
  let running: Promise<void> | undefined;
  const queues = new Map<string, { edits: Edit[]; written: Promise<void> }>();

  async function takeOver(): Promise<void> {
    if (await store.isCurrent(head)) return;
    const { changed, gone, full, ...next } = await store.changesSince(head.version, head.epoch);
    const isNew = next.epoch !== head.epoch;
    if (isNew) unpublish(() => true);
    else if (full) unpublish((id) => !changed.has(id));
    const wanted = [...changed.keys()].filter(
      (id) => full || changed.get(id) !== known.entry(id)?.version,
    );
    await store.read(wanted, (id, stored) => {
      if (!stored) return;
      if (full || stored.version > (known.entry(id)?.version ?? 0))
        known.set({ ...stored, dirty: false });
    });
    for (const id of gone) {
      if (!changed.has(id) && (known.entry(id)?.version ?? Infinity) <= next.version)
        known.remove(id);
    }
    // Absence counts only after a refresh that ran to its end: before, what is missing there may well exist
    if (next.refreshedAt !== undefined && (full || next.refreshedAt !== head.refreshedAt)) {
      for (const { contents, version } of known.entries())
        if (version === 0) known.remove(contents.project.id);
    }
    known.tidy();
    // Until all is read again, when it was last right is what this process remembers
    const refreshedAt = next.refreshedAt ?? head.refreshedAt;
    head =
      next.epoch === undefined
        ? { ...head, epoch: undefined, version: 0 }
        : { ...next, refreshedAt };
  }

  /** Redis lost these: they have to be written again. */
  function unpublish(lost: (projectId: string) => boolean): void {
    for (const entry of known.entries()) {
      if (lost(entry.contents.project.id)) known.set({ ...entry, version: 0, dirty: true });
    }
  }

  /** Callers at the same time share one run. Rejects when Redis is away. */
  async function sync(): Promise<void> {
    running ??= takeOver().finally(() => (running = undefined));
    try {
      await running;
      reachable = true;
    } catch (error) {
      reachable = false;
      throw error;
    }
  }

  async function pull(projectId: string): Promise<void> {
    let isThere = false;
    await store.read([projectId], (_id, stored) => {
      if (!stored) return;
      isThere = true;
      known.set({ ...stored, dirty: false });
    });
    if (!isThere) await sync(); // removed by someone, or all of Redis emptied: only the whole tells
  }

  /** Writes unless someone else did since `expected`; then what they wrote is taken over. */
  async function write(
    projectId: string,
    contents: Contents | undefined,
    expected: number,
    token?: string,
  ): Promise<"written" | "changed" | "lease lost"> {
    const put = await store.put(projectId, expected, contents, token);
    if (put === "lease lost") return put;
    if (put === "changed") {
      await pull(projectId);
      return put;
    }
    const { version, epoch } = put;
    if (head.epoch === undefined) head = { ...head, epoch }; // begun by this very write
    const entry = known.entry(projectId);
    if (entry && entry.version > version) return "written"; // and already written over, seen by a sync
    if (!contents) known.remove(projectId);
    else if (entry && entry.contents !== contents && entry.dirty) known.set({ ...entry, version });
    else known.set({ contents, version, dirty: false });
    return "written";
  }

  /** The version that the edits were made on, and whether they made a difference. */
  function makeEdits(
    projectId: string,
    edits: readonly Edit[],
  ): { version: number; differs: boolean } {
    const entry = known.entry(projectId);
    const version = entry?.version ?? 0;
    let next = entry?.contents;
    for (const edit of edits) next = edit(next);
    if (isSame(next, entry?.contents)) return { version, differs: entry?.dirty ?? false };
    if (next) known.set({ contents: next, version, dirty: true });
    else known.remove(projectId);
    return { version, differs: true };
  }

  async function writeEdits(projectId: string, edits: readonly Edit[]): Promise<void> {
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const { version, differs } = makeEdits(projectId, edits);
        if (!differs) return;
        const count = edits.length;
        const outcome = await write(projectId, known.entry(projectId)?.contents, version);
        if (outcome === "written" && edits.length === count) return;
      }
    } catch (error) {
      log.debug("inventory.note-kept-here", { projectId, reason: messageOf(error) });
    }
  }

  return {
    write,

    sync,

    /**
     * Changes what is known at once, and in Redis as soon as it can: edits of one project go together, and are made again
     * when someone else was first, so an edit must give the same when it is made twice. Never rejects.
     */
    change(projectId: string, edit: Edit): Promise<void> {
      const queue = queues.get(projectId);
      if (queue) {
        queue.edits.push(edit);
        makeEdits(projectId, [edit]);
        return queue.written;
      }
      const edits = [edit];
      const written = writeEdits(projectId, edits).finally(() => queues.delete(projectId));
      queues.set(projectId, { edits, written });
      return written;
    },

    head: () => head,
    /** Whether the last try to read Redis worked. */
    isReachable: () => reachable,
    /** This process just ended a refresh: no need to ask Redis what it said. */
    ended(verdict: { failed: boolean; refreshedAt: number; unread: readonly string[] }): void {
      const { failed, refreshedAt, unread } = verdict;
      head = failed ? { ...head, failed } : { ...head, failed, refreshedAt, unread };
    },
  };
}

export function isSame(a: Contents | undefined, b: Contents | undefined): boolean {
  if (a === b) return true;
  if (!a || !b) return false;
  const [one, other] = [pack(a), pack(b)];
  return one.project === other.project && one.vms === other.vms;
}
