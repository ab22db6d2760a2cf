import * as z from "zod";
import { messageOf, UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { defineScript, redisTimeLua, type RedisClient } from "../redis/redis.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";
import {
  asCalledBefore,
  type Contents,
  contentsOf,
  contentsRead,
  isSame,
  type Known,
  type Entry,
} from "./known.ts";
import {
  type Compute,
  gapsWords,
  type ListGaps,
  mayHaveVms,
  type Project,
  ComputeError,
} from "../compute/compute.ts";

/** Edits that keep meeting those of others are given up: the next refresh brings the same. */
const maxTries = 20;
/** Read at once: enough to be quick, few enough that neither Redis nor this process stands still. */
const chunk = 100;
/** A removed project is remembered this long: whoever hears of it later learns it from the next refresh. */
const rememberedMs = 3_600_000;

/**
 * Writes one project with a new version, unless its version isn't the one that the writer had read. A version is a time
 * (Redis, ms) and higher than the one before, so none is given twice, not even after Redis was emptied or lost its last
 * writes.
 *
 * KEYS head, versions, projects   ARGV project ID, version that was read (0: not there), contents as JSON (empty: gone)
 * → the new version, 0 when nothing was written
 */
const writeLua = `${redisTimeLua}
if tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0) ~= tonumber(ARGV[2]) then return 0 end
local version = string.format('%.0f', math.max(now, (redis.call('HGET', KEYS[1], 'version') or 0) + 1))
redis.call('HSET', KEYS[1], 'version', version)
redis.call('ZADD', KEYS[2], version, ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
return tonumber(version)
`;

/**
 * Says that all there is stands in Redis, unless anything was written or lost since that was so.
 *
 * KEYS head   ARGV highest version then, when the refresh ended (ms), names of unread projects as JSON, gaps of the list of
 * projects in words → 1 when it was said
 */
const completeLua = `
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'failed', 0, 'refreshedAt', ARGV[2], 'unread', ARGV[3], 'gaps', ARGV[4])
return 1
`;

const inOneMoment = z.tuple([z.record(z.string(), z.string()), z.array(z.string())]);

/** What a project is after what was just seen; undefined when it is gone, or isn't known and can't be made up. */
type Edit = (now: Contents | undefined) => Contents | undefined;

type Place = { redis: RedisClient; key: (...parts: string[]) => string };

/** The projects in Redis, undefined for those that are gone; without those that aren't there. */
async function* readProjects(
  { redis, key }: Place,
  ids: readonly string[],
): AsyncGenerator<[id: string, contents: Contents | undefined]> {
  const pause = pauseNowAndThen();
  for (let from = 0; from < ids.length; from += chunk) {
    const some = ids.slice(from, from + chunk);
    const texts = await redis.hmget(key("inventory", "projects"), ...some);
    for (const [index, id] of some.entries()) {
      const text = texts[index] ?? undefined;
      if (text === undefined) continue;
      const stored = text === "" ? undefined : (JSON.parse(text) as Contents);
      yield [id, stored && contentsOf(stored.project, stored.vms, stored.gaps)];
      await pause();
    }
  }
}

/**
 * This process's copy of what Redis holds. `sync` reads each project whose version isn't the known one; `write` writes
 * where the version is still the known one, so that no news are lost to somebody slower. What rejects, rejects because
 * Redis is away.
 *
 * A project is forgotten when Redis says that it is gone. When Redis has nothing of it, because it was emptied or lost its
 * last writes, it stays known until a refresh has run to its end: what is missing before may well exist.
 */
export type Replica = ReturnType<typeof createReplica>;

export function createReplica({ known, log, ...place }: Place & { known: Known; log: Log }) {
  const { redis, key } = place;
  const headKey = key("inventory", "head");
  const versionsKey = key("inventory", "versions");
  const projectsKey = key("inventory", "projects");
  const runWrite = defineScript(redis, "inventoryWrite", writeLua);
  const runComplete = defineScript(redis, "inventoryComplete", completeLua);
  let head = headOf({});
  let isReachable = false;
  let running: Promise<void> | undefined;
  let lastChange: Promise<void> = Promise.resolve();

  async function takeOver(): Promise<void> {
    const isDoubted = known.entries().some(({ version }) => version < 0);
    let now = headOf(await redis.hgetall(headKey));
    if (isDoubted || now.version !== head.version) now = await compare();
    if ((now.refreshedAt ?? 0) > (head.refreshedAt ?? 0)) {
      for (const { contents, version } of known.entries())
        if (version === 0) known.remove(contents.project.id);
    }
    // Until all is read again, when it was last right is what this process remembers
    head = { ...now, refreshedAt: now.refreshedAt ?? head.refreshedAt };
  }

  async function compare(): Promise<Head> {
    const both = redis.multi().hgetall(headKey).zrange(versionsKey, 0, "-1", "WITHSCORES");
    const answers = (await both.exec()) ?? [];
    for (const [error] of answers) if (error) throw error;
    const [now, scores] = inOneMoment.parse(answers.map(([, answer]) => answer));
    const versions = new Map<string, number>();
    for (let at = 0; at + 1 < scores.length; at += 2)
      versions.set(scores[at] ?? "", Number(scores[at + 1]));
    for (const entry of known.entries())
      if (entry.version !== 0 && !versions.has(entry.contents.project.id))
        known.set({ ...entry, version: 0 });
    const before = new Map(
      [...versions]
        .filter(([id, version]) => known.entry(id)?.version !== version)
        .map(([id]) => [id, known.entry(id)]),
    );
    const old = Date.now() - rememberedMs;
    const forgotten: string[] = [];
    for await (const [id, contents] of readProjects(place, [...before.keys()])) {
      const version = versions.get(id) ?? 0;
      if (!contents && version < old) forgotten.push(id);
      // What changed here meanwhile is newer, or about to be written
      if (known.entry(id) !== before.get(id)) continue;
      if (contents) known.set({ contents, version });
      else known.remove(id);
    }
    if (forgotten.length > 0)
      await redis
        .multi()
        .zrem(versionsKey, forgotten)
        .hdel(projectsKey, ...forgotten)
        .exec();
    return headOf(now);
  }

  /** Callers at the same time share one run. */
  async function sync(): Promise<void> {
    running ??= takeOver().finally(() => (running = undefined));
    try {
      await running;
      isReachable = true;
    } catch (error) {
      isReachable = false;
      throw error;
    }
  }

  /** What is known of a project may not be what Redis has: the next `sync` finds out. */
  function doubt(projectId: string): void {
    const entry = known.entry(projectId);
    if (entry) known.set({ ...entry, version: -1 });
  }

  /** False when another process was first; then what it wrote is known. */
  async function write(
    projectId: string,
    contents: Contents | undefined,
    wasRead = 0,
  ): Promise<boolean> {
    const before = known.entry(projectId);
    const text = contents ? JSON.stringify(contents) : "";
    const keys = [headKey, versionsKey, projectsKey];
    const version = Number(await runWrite(keys, [projectId, wasRead, text]));
    if (version === 0 || known.entry(projectId) !== before) doubt(projectId);
    else if (contents) known.set({ contents, version });
    else known.remove(projectId);
    if (version === 0) await sync();
    return version > 0;
  }

  async function publish(projectId: string, edit: Edit): Promise<void> {
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const entry = known.entry(projectId);
        const next = edit(entry?.contents);
        if (!entry && !next) return;
        if (await write(projectId, next, entry?.version)) return;
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
    async complete(
      refreshedAt: number,
      { unread, gaps = "" }: { unread: readonly string[]; gaps?: string | undefined },
    ): Promise<boolean> {
      for (let tries = 0; tries < maxTries; tries++) {
        await sync();
        const lost = [...known.entries()].filter(({ version }) => version === 0);
        for (const { contents } of lost) await write(contents.project.id, contents);
        if (lost.length > 0) continue;
        const said = [head.version, refreshedAt, JSON.stringify(unread), gaps];
        if ((await runComplete([headKey], said)) === 1) return true;
      }
      return false;
    },
    /** Ends a refresh that failed. */
    failed: () => redis.hset(headKey, "failed", "1"),

    head: () => head,
    /** Whether the last try to read Redis worked. */
    isReachable: () => isReachable,
  };
}

type Head = ReturnType<typeof headOf>;

/** What all processes know of the whole. */
function headOf({
  version,
  refreshedAt,
  failed,
  unread = "[]",
  gaps = "",
}: Record<string, string>) {
  return {
    /** The highest given so far, 0 when Redis is empty. */
    version: Number(version ?? 0),
    /** When the last complete refresh ended (ms), undefined when none has since Redis was emptied. */
    refreshedAt: refreshedAt === undefined ? undefined : Number(refreshedAt),
    /** The last refresh failed. */
    failed: failed === "1",
    unread: JSON.parse(unread) as readonly string[],
    /** What the list of projects lacked then, in words; empty where it lacked nothing. */
    gaps,
  };
}

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
  /** The process is closing. */
  signal: AbortSignal;
}

/**
 * Reads every project and its VMs once, and writes what changed; known projects are read while the list is still loading.
 * A project is removed when a complete list omits it and a read of it is a 404 (decision 007). Undefined when it was
 * stopped. `failed`: no project could be read, or the list could not, for this `reason`; `unread`: names of projects that keep
 * what was known of them; `gaps`: what the list of projects lacks, in words.
 */
export async function readEverything(options: RefreshOptions) {
  const { compute, known, replica, log, concurrency, signal } = options;
  const done = new Set<string>();
  const unread = new Map<string, string>();
  let failuresInARow = 0;
  let reason: string | undefined;
  let gaps: string | undefined;
  const pause = pauseNowAndThen();
  const isOver = () => reason !== undefined || failuresInARow >= hopeless || signal.aborted;

  /** Writes where nothing changed since `before`; false when it did. */
  const publish = async (id: string, contents: Contents | undefined, before: Entry | undefined) =>
    known.entry(id) === before &&
    (isSame(contents, before?.contents) || replica.write(id, contents, before?.version));

  async function readVms(project: Project): Promise<void> {
    for (let reads = 0; reads < maxReads; reads++) {
      const before = known.entry(project.id);
      const its = asCalledBefore(project, before?.contents.project);
      let short: ListGaps | undefined;
      const onGaps = (found: ListGaps) => void (short = found);
      const vms = mayHaveVms(its) ? await compute.projects.vms(project.id, { signal, onGaps }) : [];
      if (mayHaveVms(its)) failuresInARow = 0;
      await pause();
      if (await publish(project.id, contentsRead(its, vms, short, before?.contents), before))
        return;
    }
  }

  async function read(project: Project): Promise<void> {
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
      // Its VMs stay as they were
      const before = known.entry(project.id);
      const { project: was, vms = [], gaps: its } = before?.contents ?? {};
      await publish(project.id, contentsOf(asCalledBefore(project, was), vms, its), before);
    }
  }

  async function readList(): Promise<readonly Project[]> {
    try {
      const onGaps = (found: ListGaps) => void (gaps = gapsWords(found));
      const list = await compute.projects.listAll(maxProjects, { signal, onGaps });
      return [...new Map(list.map((project) => [project.id, project])).values()];
    } catch (error) {
      reason = messageOf(error); // also stops the reads in progress
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
  const [list] = await Promise.all([readList(), inRandomOrder(withVms, concurrency, read)]);
  const rest = list.filter((project) => {
    const now = known.entry(project.id)?.contents.project;
    const its = contentsOf(asCalledBefore(project, now), []).project;
    return !done.has(project.id) || !isSame(now, its);
  });
  await inRandomOrder(rest, concurrency, read);
  if (signal.aborted) return undefined;
  if (reason !== undefined) return { failed: true, reason, unread: [] };
  const inList = new Set(list.map((project) => project.id));
  const vanished = before.filter((project) => !inList.has(project.id));
  if (list.length < maxProjects) await inRandomOrder(vanished, concurrency, vanish);
  if (signal.aborted) return undefined;
  for (const project of list) if (!done.has(project.id)) unread.set(project.id, project.name);
  const tried = list.filter((project) => mayHaveVms(project)).length;
  const failed = tried > 0 && unread.size >= tried;
  return { failed, reason, gaps, unread: [...unread.values()].toSorted() };
}

/** At most `width` at a time. */
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
