import * as z from "zod";
import { defineScript, redisTimeLua, type RedisClient } from "../redis/redis.ts";
import { type Contents, contentsOf } from "./known.ts";

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
const write = `${redisTimeLua}
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
 * KEYS head   ARGV highest version then, when the refresh ended (ms), names of unread projects as JSON → 1 when it was said
 */
const complete = `
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'failed', 0, 'refreshedAt', ARGV[2], 'unread', ARGV[3])
return 1
`;

/** What all processes know of the whole. */
export interface Head {
  /** The highest given so far, 0 when Redis is empty. */
  version: number;
  /** When the last complete refresh ended (ms), undefined when none has since Redis was emptied. */
  refreshedAt: number | undefined;
  /** The last refresh failed. */
  failed: boolean;
  unread: readonly string[];
}

const inOneMoment = z.tuple([z.record(z.string(), z.string()), z.array(z.string())]);

/** The inventory in Redis. Every call rejects when Redis is away. */
export type InventoryStore = ReturnType<typeof createInventoryStore>;

export function createInventoryStore(redis: RedisClient, key: (...parts: string[]) => string) {
  const head = key("inventory", "head");
  const versions = key("inventory", "versions");
  const projects = key("inventory", "projects");
  const runWrite = defineScript(redis, "inventoryWrite", write);
  const runComplete = defineScript(redis, "inventoryComplete", complete);

  /** Undefined for those that are gone; without those that aren't there. */
  async function read(projectIds: readonly string[]): Promise<Map<string, Contents | undefined>> {
    const found = new Map<string, Contents | undefined>();
    for (let from = 0; from < projectIds.length; from += chunk) {
      const ids = projectIds.slice(from, from + chunk);
      const texts = await redis.hmget(projects, ...ids);
      for (const [index, id] of ids.entries()) {
        const text = texts[index] ?? undefined;
        if (text === undefined) continue;
        const stored = text === "" ? undefined : (JSON.parse(text) as Contents);
        found.set(id, stored && contentsOf(stored.project, stored.vms));
      }
    }
    return found;
  }

  return {
    head: async (): Promise<Head> => headOf(await redis.hgetall(head)),

    /** The head, and the version of each project, as they are at one moment. */
    async versions(): Promise<{ head: Head; versions: ReadonlyMap<string, number> }> {
      const both = redis.multi().hgetall(head).zrange(versions, 0, "-1", "WITHSCORES");
      const answers = (await both.exec()) ?? [];
      for (const [error] of answers) if (error) throw error;
      const [now, scores] = inOneMoment.parse(answers.map(([, answer]) => answer));
      const found = new Map<string, number>();
      for (let at = 0; at + 1 < scores.length; at += 2)
        found.set(scores[at] ?? "", Number(scores[at + 1]));
      return { head: headOf(now), versions: found };
    },

    read,
    readAll: async () => (await read(await redis.hkeys(projects))).values(),

    /** The new version; 0 when the project has another one than the one that was read. */
    async write(projectId: string, wasRead: number, contents: Contents | undefined) {
      const text = contents ? JSON.stringify(contents) : "";
      return Number(await runWrite([head, versions, projects], [projectId, wasRead, text]));
    },

    /** Drops those of the projects that are gone whose version is old. */
    async tidy(gone: readonly (readonly [id: string, version: number])[]): Promise<void> {
      const since = Date.now() - rememberedMs;
      const old = gone.flatMap(([id, version]) => (version < since ? [id] : []));
      if (old.length > 0)
        await redis
          .multi()
          .zrem(versions, old)
          .hdel(projects, ...old)
          .exec();
    },

    async complete(version: number, refreshedAt: number, unread: readonly string[]) {
      return (
        Number(await runComplete([head], [version, refreshedAt, JSON.stringify(unread)])) === 1
      );
    },
    failed: () => redis.hset(head, "failed", "1"),
  };
}

function headOf({ version, refreshedAt, failed, unread = "[]" }: Record<string, string>): Head {
  return {
    version: Number(version ?? 0),
    refreshedAt: refreshedAt === undefined ? undefined : Number(refreshedAt),
    failed: failed === "1",
    unread: JSON.parse(unread) as string[],
  };
}
