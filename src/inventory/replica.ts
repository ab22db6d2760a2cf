import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Contents, isSame, type Known } from "./known.ts";
import type { Head, InventoryStore } from "./store.ts";

/** Edits that keep meeting those of others are given up: the next refresh brings the same. */
const maxTries = 20;

/** What a project is after what was just seen; undefined when it is gone, or isn't known and can't be made up. */
type Edit = (now: Contents | undefined) => Contents | undefined;

/**
 * This process's copy of what Redis holds. `sync` reads each project whose version isn't the known one; `write` writes
 * where the version is still the known one, so that no news are lost to somebody slower.
 *
 * A project is forgotten when Redis says that it is gone. When Redis has nothing of it, because it was emptied or lost its
 * last writes, it stays known until a refresh has run to its end: what is missing before may well exist.
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
  let head: Head = { version: 0, refreshedAt: undefined, failed: false, unread: [] };
  let isReachable = false;
  let isDoubted = false;
  let running: Promise<void> | undefined;
  let lastChange: Promise<void> = Promise.resolve();

  async function takeOver(): Promise<void> {
    const wasDoubted = isDoubted;
    isDoubted = false;
    let now = await store.head();
    if (wasDoubted || now.version !== head.version) now = await compare();
    if ((now.refreshedAt ?? 0) > (head.refreshedAt ?? 0)) {
      for (const { contents, version } of known.entries())
        if (version === 0) known.remove(contents.project.id);
    }
    // Until all is read again, when it was last right is what this process remembers
    head = { ...now, refreshedAt: now.refreshedAt ?? head.refreshedAt };
  }

  async function compare(): Promise<Head> {
    const { head: now, versions } = await store.versions();
    for (const entry of known.entries())
      if (entry.version !== 0 && !versions.has(entry.contents.project.id))
        known.set({ ...entry, version: 0 });
    const before = new Map(
      [...versions]
        .filter(([id, version]) => known.entry(id)?.version !== version)
        .map(([id]) => [id, known.entry(id)]),
    );
    const read = await store.read([...before.keys()]);
    for (const [id, contents] of read) {
      // What changed here meanwhile is newer, or about to be written
      if (known.entry(id) !== before.get(id)) continue;
      if (contents) known.set({ contents, version: versions.get(id) ?? 0 });
      else known.remove(id);
    }
    await store.tidy([...versions].filter(([id]) => read.has(id) && !read.get(id)));
    return now;
  }

  /** Callers at the same time share one run. Rejects when Redis is away. */
  async function sync(): Promise<void> {
    running ??= takeOver().finally(() => (running = undefined));
    try {
      await running;
      isReachable = true;
    } catch (error) {
      isReachable = false;
      isDoubted = true;
      throw error;
    }
  }

  /** What is known of a project may not be what Redis has: the next `sync` finds out. */
  function doubt(projectId: string): void {
    const entry = known.entry(projectId);
    if (entry) known.set({ ...entry, version: -1 });
    isDoubted = true;
  }

  /** False when another process was first; then what it wrote is known. */
  async function write(
    projectId: string,
    contents: Contents | undefined,
    wasRead: number,
  ): Promise<boolean> {
    const before = known.entry(projectId);
    const version = await store.write(projectId, wasRead, contents);
    if (version === 0 || known.entry(projectId) !== before) doubt(projectId);
    else if (contents) known.set({ contents, version });
    else known.remove(projectId);
    if (version === 0) await sync();
    return version > 0;
  }

  async function publish(projectId: string, edit: Edit): Promise<void> {
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const { contents, version = 0 } = known.entry(projectId) ?? {};
        const next = edit(contents);
        if (!contents && !next) return;
        if (await write(projectId, next, version)) return;
      }
    } catch (error) {
      log.debug("inventory.note-kept-here", { projectId, reason: messageOf(error) });
      doubt(projectId);
    }
  }

  return {
    write,
    sync,

    /**
     * Changes what is known at once, and in Redis as soon as it can, one after the other: they would only meet. An edit is
     * made again when someone else was first, so it must give the same when it is made twice. Never rejects.
     */
    change(projectId: string, edit: Edit): Promise<void> {
      const { contents, version = 0 } = known.entry(projectId) ?? {};
      const next = edit(contents);
      if (isSame(next, contents) && (version > 0 || !next)) return Promise.resolve();
      if (next) known.set({ contents: next, version });
      lastChange = lastChange.then(() => publish(projectId, edit));
      return lastChange;
    },

    /** Ends a complete refresh, once all that is known stands in Redis. False when Redis changes too quickly for that. */
    async complete(refreshedAt: number, unread: readonly string[]): Promise<boolean> {
      for (let tries = 0; tries < maxTries; tries++) {
        await sync();
        const lost = [...known.entries()].filter(({ version }) => version === 0);
        for (const { contents } of lost) await write(contents.project.id, contents, 0);
        if (lost.length === 0 && (await store.complete(head.version, refreshedAt, unread)))
          return true;
      }
      return false;
    },

    head: () => head,
    /** Whether the last try to read Redis worked. */
    isReachable: () => isReachable,
  };
}
