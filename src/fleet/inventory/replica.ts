import * as z from "zod";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { defineScript, redisTimeLua, type RedisClient } from "../../redis/redis.ts";
import { type Contents, contentsOf, isSame, type KnownFleet } from "./known.ts";
import type { KnownProject, KnownVm } from "./inventory.ts";
import type { LeftOut, Specs } from "../compute/compute.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";

/**
 * An edit that keeps conflicting with other processes is given up after this many tries. The next
 * refresh brings the same result.
 */
const maxTries = 20;
/**
 * How many projects are read at once: enough to be quick, and few enough that neither Redis nor
 * this process is blocked.
 */
const chunk = 100;
/** How many writes are remembered. A process that is further behind compares everything. */
const writesKept = 1_000;
/**
 * How long a removed project is remembered (ms). A process that hasn't heard of it by then learns
 * it from the next refresh.
 */
const rememberedMs = 3_600_000;

/**
 * Writes one project with a new version, unless its version in Redis isn't the one that the writer
 * had read. A version is a time (Redis, ms) and higher than the one before, so none is given twice,
 * even after Redis was emptied or lost its last writes.
 *
 * KEYS head, versions, projects, writes   ARGV project ID, version that was read (0: not there),
 * contents as JSON (empty: gone)
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
 * Records that everything is in Redis, and since when, unless anything was written or lost
 * meanwhile. It uses Redis time, because the clock of the process that read may be wrong.
 *
 * KEYS head   ARGV highest version when it was checked, names of unread projects as JSON, gaps of
 * the list of projects in words
 * → 1 when it was recorded
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

const optionalText = z.string().exactOptional();
const optionalNumber = z.number().exactOptional();
const commonMembers = {
  id: z.string(),
  name: z.string(),
  status: z.string(),
  region: optionalText,
  createdAt: optionalText,
};

export const contentsRecord = defineRecord({
  name: "project of the inventory",
  schema: objectOf<Contents>({
    project: objectOf<KnownProject>({ ...commonMembers, type: z.string() }),
    vms: z.array(
      objectOf<KnownVm>({
        ...commonMembers,
        projectId: z.string(),
        projectName: z.string(),
        specs: objectOf<Specs>({
          cpu: optionalNumber,
          memory: optionalNumber,
          disk: optionalNumber,
        }).exactOptional(),
      }),
    ),
    gaps: objectOf<NonNullable<Contents["gaps"]>>({
      leftOut: z.array(objectOf<LeftOut>({ name: z.string().optional(), problem: z.string() })),
      isCut: z.boolean(),
    }).exactOptional(),
  }),
});

export const unreadProjects = defineRecord<readonly string[]>({
  name: "unread projects of the inventory",
  schema: z.array(z.string()),
});

/**
 * Computes the contents of a project after something was seen of it. Undefined when it is gone, or
 * isn't known and can't be made up.
 */
type Edit = (now: Contents | undefined) => Contents | undefined;

type Place = { redis: RedisClient; key: (...parts: string[]) => string };

/**
 * Reads projects from Redis. The contents are undefined for a project that is gone, and
 * `unreadable` for one that can't be read; a project that isn't in Redis is left out.
 */
async function* readProjects(
  { redis, key }: Place,
  ids: readonly string[],
): AsyncGenerator<[id: string, contents: Contents | "unreadable" | undefined]> {
  const pause = pauseNowAndThen();
  for (let from = 0; from < ids.length; from += chunk) {
    const some = ids.slice(from, from + chunk);
    const named = key("inventory", "projects");
    const texts = await redis.hmget(named, ...some);
    for (const [index, id] of some.entries()) {
      const text = texts[index] ?? undefined;
      if (text === undefined) continue;
      const stored = text === "" ? undefined : contentsRecord.parse(text, `${named} ${id}`);
      if (text !== "" && !stored) yield [id, "unreadable"];
      else yield [id, stored && contentsOf(stored.project, stored.vms, stored.gaps)];
      await pause();
    }
  }
}

/**
 * This process's copy of what Redis has. `sync` reads each project whose version isn't the known
 * one; `write` writes only if the version is still the known one, so that a slower process can't
 * overwrite newer data. They reject only because Redis is unavailable.
 *
 * A project is forgotten when Redis says that it is gone. When Redis has nothing of it, because it
 * was emptied or lost its last writes, the project stays known until a refresh has completed,
 * because it may well exist.
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
  let head = headOf({}, headKey);
  let isReachable = false;
  /**
   * True when what this process knows may differ from Redis, even in what was written before
   * `head`.
   */
  let isInDoubt = true;
  let running: Promise<void> | undefined;
  let lastChange: Promise<void> = Promise.resolve();

  /**
   * Reads in one transaction: the head, which projects were written after this version, and whether
   * Redis still remembers the write of this version.
   */
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
    return { now: headOf(fields, headKey), versions, isUnbroken: writeAt !== null };
  }

  /**
   * Reads what was written since the last time. Reads everything when this process is in doubt or
   * Redis has lost a write.
   */
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
      // Until everything was read again, this process remembers when the list was last complete.
      head = { ...now, refreshedAt: now.refreshedAt ?? head.refreshedAt };
    } catch (error) {
      isInDoubt ||= isWhole;
      throw error;
    }
  }

  /** Marks known projects that Redis doesn't have. */
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
      if (contents === "unreadable") {
        // Redis forgets it, so that the next refresh can write it, and every process doubts it.
        forgotten.push(id);
        const entry = known.entry(id);
        if (entry) known.set({ ...entry, version: 0 });
        continue;
      }
      if (!contents && version < old) forgotten.push(id);
      // A project that changed here meanwhile is newer, or about to be written. If that write is
      // refused, the project is in doubt and read again.
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

  /** Brings this copy up to date. Concurrent callers share one run. */
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

  /**
   * Records that what is known of a project may not be what Redis has. The next `sync` finds out.
   */
  function doubt(projectId: string): void {
    isInDoubt = true;
    const entry = known.entry(projectId);
    if (entry) known.set({ ...entry, version: -1 });
  }

  /**
   * Writes a project. Resolves with false when another process wrote it first; what that process
   * wrote is known then.
   */
  async function write(
    projectId: string,
    contents: Contents | undefined,
    wasRead = 0,
  ): Promise<boolean> {
    const before = known.entry(projectId);
    const text = contents ? contentsRecord.write(contents) : "";
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
     * Changes what is known at once, and in Redis as soon as possible. Changes are written one
     * after the other, because they would otherwise conflict. An edit is repeated when another
     * process was first, so it must give the same result when it is made twice. Never rejects.
     */
    change(projectId: string, edit: Edit): Promise<void> {
      const { contents, version = 0 } = known.entry(projectId) ?? {};
      const next = edit(contents);
      if (isSame(next, contents) && (version > 0 || !next)) return Promise.resolve();
      if (next) known.set({ contents: next, version });
      lastChange = lastChange.then(() => publish(projectId, edit));
      return lastChange;
    },

    /**
     * Ends a complete refresh, once everything that is known is in Redis. Resolves with false when
     * Redis changes too quickly for that.
     */
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
        const completeHead = [head.version, unreadProjects.write(unread), gaps];
        if ((await runComplete([headKey], completeHead)) === 1) return true;
      }
      return false;
    },
    /** Records that a refresh failed. */
    failed: () => redis.hset(headKey, "failed", "1"),

    head: () => head,
    /** Whether the last attempt to read Redis worked. */
    isReachable: () => isReachable,
  };
}

/** The state of the whole inventory, which all processes share. */
function headOf(
  { version, refreshedAt, failed, unread = "[]", gaps = "" }: Record<string, string>,
  key: string,
) {
  const unreadNames = unreadProjects.parse(unread, key);
  // Where nobody can tell what wasn't read, nothing counts as read completely.
  const isComplete = refreshedAt !== undefined && unreadNames !== undefined;
  return {
    /** The highest version given so far; 0 when Redis is empty. */
    version: Number(version ?? 0),
    /**
     * When the last complete refresh ended (Redis time, ms). Undefined when there was none since
     * Redis was emptied.
     */
    refreshedAt: isComplete ? Number(refreshedAt) : undefined,
    /** Whether the last refresh failed. */
    failed: failed === "1" || unreadNames === undefined,
    unread: unreadNames ?? [],
    /** The gaps of the list of projects then, in words. Empty when it had none. */
    gaps,
  };
}
