import * as z from "zod";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type RedisClient, defineScript, redisTimeLua } from "../../redis/redis.ts";
import { type Contents, isSame } from "./contents.ts";
import type { KnownFleet } from "./known-fleet.ts";
import {
  type Head,
  type Place,
  contentsRecord,
  headOf,
  readProjects,
  unreadProjects,
} from "./stored-fleet.ts";

/**
 * An edit that keeps conflicting with other processes is given up after this many tries. The next
 * refresh brings the same result.
 */
const maxTries = 20;
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

/**
 * Computes the contents of a project after something was seen of it. Undefined when it is gone, or
 * isn't known and can't be made up.
 */
type Edit = (now: Contents | undefined) => Contents | undefined;

/**
 * This process's copy of what Redis has. `sync` reads each project whose version isn't the known
 * one; `write` writes only if the version is still the known one, so that a slower process can't
 * overwrite newer data. They reject only because Redis is unavailable.
 *
 * A project is forgotten when Redis says that it is gone. When Redis has nothing of it, because it
 * was emptied or lost its last writes, the project stays known until a refresh has completed,
 * because it may well exist.
 */
export class Replica {
  readonly #redis: RedisClient;
  readonly #key: Place["key"];
  readonly #known: KnownFleet;
  readonly #log: Log;
  readonly #names;
  readonly #runWrite;
  readonly #runComplete;
  #head: Head;
  #isReachable = false;
  /**
   * True when what this process knows may differ from Redis, even in what was written before
   * `head`.
   */
  #isInDoubt = true;
  #running: Promise<void> | undefined;
  #lastChange: Promise<void> = Promise.resolve();

  constructor({ redis, key, known, log }: Place & { known: KnownFleet; log: Log }) {
    this.#redis = redis;
    this.#key = key;
    this.#known = known;
    this.#log = log;
    this.#names = {
      head: key("inventory", "head"),
      versions: key("inventory", "versions"),
      projects: key("inventory", "projects"),
      writes: key("inventory", "writes"),
    };
    this.#runWrite = defineScript(redis, "inventoryWrite", writeLua);
    this.#runComplete = defineScript(redis, "inventoryComplete", completeLua);
    this.#head = headOf({}, this.#names.head);
  }

  /** The state of the inventory as of the last `sync`. */
  head(): Head {
    return this.#head;
  }

  /** Whether the last attempt to read Redis worked. */
  isReachable(): boolean {
    return this.#isReachable;
  }

  // Reading

  /** Brings this copy up to date. Concurrent callers share one run. */
  async sync(): Promise<void> {
    this.#running ??= this.#readNew().finally(() => (this.#running = undefined));
    try {
      await this.#running;
      this.#isReachable = true;
    } catch (error) {
      this.#isReachable = false;
      throw error;
    }
  }

  /**
   * Reads what was written since the last time. Reads everything when this process is in doubt or
   * Redis has lost a write.
   */
  async #readNew(): Promise<void> {
    let isWhole = this.#isInDoubt;
    this.#isInDoubt = false;
    try {
      let since = await this.#readSince(isWhole ? 0 : this.#head.version);
      if (!isWhole && !since.isUnbroken && since.now.version !== this.#head.version) {
        isWhole = true;
        since = await this.#readSince(0);
      }
      if (isWhole) this.#doubtMissing(since.versions);
      await this.#readChanged(since.versions);
      const { now } = since;
      if ((now.refreshedAt ?? 0) > (this.#head.refreshedAt ?? 0)) {
        for (const { contents, version } of this.#known.entries())
          if (version === 0) this.#known.remove(contents.project.id);
      }
      // Until everything was read again, this process remembers when the list was last complete.
      this.#head = { ...now, refreshedAt: now.refreshedAt ?? this.#head.refreshedAt };
    } catch (error) {
      this.#isInDoubt ||= isWhole;
      throw error;
    }
  }

  /**
   * Reads in one transaction: the head, which projects were written after this version, and whether
   * Redis still remembers the write of this version.
   */
  async #readSince(version: number) {
    const { head, writes, versions: versionsKey } = this.#names;
    const all = this.#redis
      .multi()
      .hgetall(head)
      .lpos(writes, version)
      .zrangebyscore(versionsKey, `(${version}`, "+inf", "WITHSCORES");
    const answers = (await all.exec()) ?? [];
    for (const [error] of answers) if (error) throw error;
    const [fields, writeAt, scores] = inOneMoment.parse(answers.map(([, answer]) => answer));
    const versions = new Map<string, number>();
    for (let at = 0; at + 1 < scores.length; at += 2)
      versions.set(scores[at] ?? "", Number(scores[at + 1]));
    return { now: headOf(fields, head), versions, isUnbroken: writeAt !== null };
  }

  /** Marks known projects that Redis doesn't have. */
  #doubtMissing(versions: ReadonlyMap<string, number>): void {
    for (const entry of this.#known.entries())
      if (entry.version !== 0 && !versions.has(entry.contents.project.id))
        this.#known.set({ ...entry, version: 0 });
  }

  async #readChanged(versions: ReadonlyMap<string, number>): Promise<void> {
    const known = this.#known;
    const before = new Map(
      [...versions]
        .filter(([id, version]) => known.entry(id)?.version !== version)
        .map(([id]) => [id, known.entry(id)]),
    );
    const old = Date.now() - rememberedMs;
    const forgotten: string[] = [];
    const place = { redis: this.#redis, key: this.#key };
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
      await this.#redis
        .multi()
        .zrem(this.#names.versions, forgotten)
        .hdel(this.#names.projects, ...forgotten)
        .exec();
  }

  /**
   * Records that what is known of a project may not be what Redis has. The next `sync` finds out.
   */
  #doubt(projectId: string): void {
    this.#isInDoubt = true;
    const entry = this.#known.entry(projectId);
    if (entry) this.#known.set({ ...entry, version: -1 });
  }

  // Writing

  /**
   * Writes a project. Resolves with false when another process wrote it first; what that process
   * wrote is known then.
   */
  async write(projectId: string, contents: Contents | undefined, wasRead = 0): Promise<boolean> {
    const known = this.#known;
    const before = known.entry(projectId);
    const text = contents ? contentsRecord.write(contents) : "";
    const { head, versions, projects, writes } = this.#names;
    const keys = [head, versions, projects, writes];
    const version = Number(await this.#runWrite(keys, [projectId, wasRead, text]));
    if (version === 0 || known.entry(projectId) !== before) this.#doubt(projectId);
    else if (contents) known.set({ contents, version });
    else known.remove(projectId);
    if (version === 0) await this.sync();
    return version > 0;
  }

  /**
   * Changes what is known at once, and in Redis as soon as possible. Changes are written one after
   * the other, because they would otherwise conflict. An edit is repeated when another process was
   * first, so it must give the same result when it is made twice. Never rejects.
   */
  change(projectId: string, edit: Edit): Promise<void> {
    const { contents, version = 0 } = this.#known.entry(projectId) ?? {};
    const next = edit(contents);
    if (isSame(next, contents) && (version > 0 || !next)) return Promise.resolve();
    if (next) this.#known.set({ contents: next, version });
    this.#lastChange = this.#lastChange.then(() => this.#publish(projectId, edit));
    return this.#lastChange;
  }

  async #publish(projectId: string, edit: Edit): Promise<void> {
    try {
      for (let tries = 0; tries < maxTries; tries++) {
        const entry = this.#known.entry(projectId);
        const next = edit(entry?.contents);
        if (!entry && !next) return;
        if (await this.write(projectId, next, entry?.version)) return;
      }
    } catch (error) {
      this.#log.debug("inventory.note-kept-here", { projectId, reason: messageOf(error) });
      this.#doubt(projectId);
    }
  }

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
      await this.sync();
      const lost = [...this.#known.entries()].filter(({ version }) => version === 0);
      for (const { contents } of lost) await this.write(contents.project.id, contents);
      if (lost.length > 0) continue;
      const completeHead = [this.#head.version, unreadProjects.write(unread), gaps];
      if ((await this.#runComplete([this.#names.head], completeHead)) === 1) return true;
    }
    return false;
  }

  /** Records that a refresh failed. */
  async failed(): Promise<void> {
    await this.#redis.hset(this.#names.head, "failed", "1");
  }
}
