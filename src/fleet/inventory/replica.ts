import * as z from "zod";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { defineScript, redisTimeLua, type RedisClient } from "../../redis/redis.ts";
import { type Contents, contentsOf, isSame, type KnownFleet } from "./known.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";

/** Edits that keep meeting those of others are given up: the next refresh brings the same. */
const maxTries = 20;
/** Read at once: enough to be quick, few enough that neither Redis nor this process stands still. */
const chunk = 100;
/** So many writes are remembered; who is further behind compares all there is. */
const writesKept = 1_000;
/** A removed project is remembered this long: whoever hears of it later learns it from the next refresh. */
const rememberedMs = 3_600_000;

/**
 * Writes one project with a new version, unless its version isn't the one that the writer had read. A version is a time
 * (Redis, ms) and higher than the one before, so none is given twice, not even after Redis was emptied or lost its last
 * writes.
 *
 * KEYS head, versions, projects, writes   ARGV project ID, version that was read (0: not there), contents as JSON (empty: gone)
 * → the new version, 0 when nothing was written
 */
const writeLua = `${redisTimeLua}
if tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0) ~= tonumber(ARGV[2]) then return 0 end
local version = string.format('%.0f', math.max(now, (redis.call('HGET', KEYS[1], 'version') or 0) + 1))
redis.call('HSET', KEYS[1], 'version', version)
redis.call('ZADD', KEYS[2], version, ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
redis.call('LPUSH', KEYS[4], version)
redis.call('LTRIM', KEYS[4], 0, ${writesKept - 1})
return tonumber(version)
`;

/**
 * Says that all there is stands in Redis, and since when (Redis time: a process whose clock is wrong may have read it), unless anything
 * was written or lost since that was so.
 *
 * KEYS head   ARGV highest version then, names of unread projects as JSON, gaps of the list of projects in words → 1 when it was
 * said
 */
const completeLua = `${redisTimeLua}
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'failed', 0, 'refreshedAt', string.format('%.0f', now), 'unread', ARGV[2], 'gaps', ARGV[3])
return 1
`;

const inOneMoment = z.tuple([
  z.record(z.string(), z.string()),
  z.number().nullable(),
  z.array(z.string()),
]);

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

export function createReplica({ known, log, ...place }: Place & { known: KnownFleet; log: Log }) {
  const { redis, key } = place;
  const headKey = key("inventory", "head");
  const versionsKey = key("inventory", "versions");
  const projectsKey = key("inventory", "projects");
  const writesKey = key("inventory", "writes");
  const runWrite = defineScript(redis, "inventoryWrite", writeLua);
  const runComplete = defineScript(redis, "inventoryComplete", completeLua);
  let head = headOf({});
  let isReachable = false;
  /** What this process knows may differ from Redis in what was written before `head`. */
  let isInDoubt = true;
  let running: Promise<void> | undefined;
  let lastChange: Promise<void> = Promise.resolve();

  /** In one moment: the head, which projects were written after this version, and whether Redis still knows of its write. */
  async function readSince(version: number) {
    const all = redis
      .multi()
      .hgetall(headKey)
      .lpos(writesKey, version)
      .zrangebyscore(versionsKey, `(${version}`, "+inf", "WITHSCORES");
    const answers = (await all.exec()) ?? [];
    for (const [error] of answers) if (error) throw error;
    const [fields, writeAt, scores] = inOneMoment.parse(answers.map(([, answer]) => answer));
    const versions = new Map<string, number>();
    for (let at = 0; at + 1 < scores.length; at += 2)
      versions.set(scores[at] ?? "", Number(scores[at + 1]));
    return { now: headOf(fields), versions, isUnbroken: writeAt !== null };
  }

  /** Reads what was written since the last time; what there is, when this process is in doubt or Redis has lost a write. */
  async function readNew(): Promise<void> {
    let isWhole = isInDoubt;
    isInDoubt = false;
    try {
      let since = await readSince(isWhole ? 0 : head.version);
      if (!isWhole && !since.isUnbroken && since.now.version !== head.version) {
        isWhole = true;
        since = await readSince(0);
      }
      if (isWhole) doubtMissing(since.versions);
      await readChanged(since.versions);
      const { now } = since;
      if ((now.refreshedAt ?? 0) > (head.refreshedAt ?? 0)) {
        for (const { contents, version } of known.entries())
          if (version === 0) known.remove(contents.project.id);
      }
      // Until all is read again, when it was last right is what this process remembers
      head = { ...now, refreshedAt: now.refreshedAt ?? head.refreshedAt };
    } catch (error) {
      isInDoubt ||= isWhole;
      throw error;
    }
  }

  /** Redis has none of these. */
  function doubtMissing(versions: ReadonlyMap<string, number>): void {
    for (const entry of known.entries())
      if (entry.version !== 0 && !versions.has(entry.contents.project.id))
        known.set({ ...entry, version: 0 });
  }

  async function readChanged(versions: ReadonlyMap<string, number>): Promise<void> {
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
      // What changed here meanwhile is newer, or about to be written: a write that is refused leaves it in doubt
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
  }

  /** Callers at the same time share one run. */
  async function sync(): Promise<void> {
    running ??= readNew().finally(() => (running = undefined));
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
    isInDoubt = true;
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
    const keys = [headKey, versionsKey, projectsKey, writesKey];
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
    async complete({
      unread,
      gaps = "",
    }: {
      unread: readonly string[];
      gaps?: string | undefined;
    }): Promise<boolean> {
      for (let tries = 0; tries < maxTries; tries++) {
        await sync();
        const lost = [...known.entries()].filter(({ version }) => version === 0);
        for (const { contents } of lost) await write(contents.project.id, contents);
        if (lost.length > 0) continue;
        const said = [head.version, JSON.stringify(unread), gaps];
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
    /** When the last complete refresh ended (Redis, ms), undefined when none has since Redis was emptied. */
    refreshedAt: refreshedAt === undefined ? undefined : Number(refreshedAt),
    /** The last refresh failed. */
    failed: failed === "1",
    unread: JSON.parse(unread) as readonly string[],
    /** What the list of projects lacked then, in words; empty where it lacked nothing. */
    gaps,
  };
}
