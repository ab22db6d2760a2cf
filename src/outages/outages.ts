import { createPending } from "../redis/pending.ts";
import { type Keys, defineScript, type RedisClient, redisTimeLua } from "../redis/redis.ts";

/** The dependencies. */
export const partNames = {
  slack: "Slack",
  redis: "Redis",
  service: "The compute service",
} as const;
export type Part = keyof typeof partNames;
export const parts = Object.keys(partNames) as readonly Part[];

/** A time in which one part was unavailable (Redis, ms). */
interface Outage {
  /** `slack-1763600000000` */
  id: string;
  part: Part;
  since: number;
}

/** Of an outage that is over and not told of yet (`redis/pending.ts`). */
const recapKind = "recap";

export type Past = Outage & { until: number };

/** An interaction refused while Redis was unavailable: nothing was done. */
export interface RefusedInteraction {
  id: string;
  channelId: string;
  userId: string;
  teamId: string;
  /** As typed; undefined for a button or form. */
  words?: string | undefined;
  /** What the person is called, where Slack says it. */
  name?: string | undefined;
  /** Nobody knows whether Redis stored it: then it ran once Redis was back. */
  mayRun?: boolean | undefined;
}

/** How long ago this process saw calls of a part fail, with no answer in between, or saw one answered (ms), if at all. */
export interface Sighting {
  part: Part;
  failedAgo?: { first: number; last: number } | undefined;
  answeredAgo?: number | undefined;
}

/**
 * Adds what one process saw to what all processes saw of the part, under Redis time, so that an outage opens once and closes
 * once. `seen` is a hash: since when calls fail, when the last one failed, the first answer after that, and the ID of the
 * outage once the failures have lasted long enough without an answer in any process. The first answer ends it, once nobody
 * has failed for the quiet time; then it is on the list of those to tell of, as `<id> <since> <until>`.
 *
 * KEYS seen, pending, last outage
 * ARGV part, first failure, last failure, answer (ms ago, '' for none), long enough (ms), quiet for (ms), longest between two
 *      failures that belong together (ms)
 * → ID of the outage that goes on, or ends with this; '' for none
 */
const sawScript = `${redisTimeLua}
local function at(ago) return tonumber(ago) and now - ago end
local function whole(n) return n and string.format('%.0f', n) or '' end
local first, last, answered = at(ARGV[2]), at(ARGV[3]), at(ARGV[4])
local enough, quiet, gap = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local got = redis.call('HMGET', KEYS[1], 'since', 'failed', 'answered', 'id')
local since, failed, ok = tonumber(got[1] or ''), tonumber(got[2] or ''), tonumber(got[3] or '')
local id = got[4] or ''
if first and since and id == '' then
  -- Of a report with both, the answer may lie between what failed before and this failure
  local wasAnswered = answered and answered >= failed and answered < first
  if wasAnswered or first - failed > gap then since = nil end
end
if first and not since then since, failed = first, last end
if not since then return '' end
if first then since, failed = math.min(since, first), math.max(failed, last) end
if id == '' and failed - since >= enough then id = ARGV[1] .. '-' .. whole(since) end
if ok and ok < failed then ok = nil end
if not ok and answered and answered >= failed then ok = answered end
if ok and (id == '' or now - failed >= quiet) then
  redis.call('DEL', KEYS[1])
  if id ~= '' then
    local outage = id .. ' ' .. whole(since) .. ' ' .. whole(ok)
    redis.call('ZADD', KEYS[2], now + quiet, '${recapKind} ' .. outage)
    redis.call('SET', KEYS[3], outage)
  end
else
  redis.call('HSET', KEYS[1], 'since', whole(since), 'failed', whole(failed), 'answered', whole(ok), 'id', id)
end
return id
`;

const onList = ({ id, since, until }: Past) => `${id} ${since} ${until}`;

function fromList(text: string): Past {
  const [id = "", since, until] = text.split(" ");
  const part = parts.find((one) => id.startsWith(`${one}-`)) ?? "service";
  return { id, part, since: Number(since), until: Number(until) };
}

/** Retries come within seconds: failures further apart are separate. */
const gapMs = 60_000;
const keptMs = 24 * 3600_000;

/** Every call rejects while Redis is unavailable. */
export type OutageStore = ReturnType<typeof createOutageStore>;

export function createOutageStore(redis: RedisClient, key: Keys) {
  const runSaw = defineScript(redis, "gatehouseSawPart", sawScript);
  const last = key("outages", "last");
  const pending = createPending(redis, key, recapKind);
  const seenKey = (part: Part) => key("outages", "seen", part);
  const refusedKey = (id: string) => key("outages", "refused", id);

  return {
    /** Resolves with the ID of the part's outage, where one goes on or ends with this. */
    async saw(
      { part, failedAgo, answeredAgo }: Sighting,
      outageMs: number,
    ): Promise<string | undefined> {
      const seen = [failedAgo?.first, failedAgo?.last, answeredAgo].map((ms) =>
        ms === undefined ? "" : Math.round(ms),
      );
      // It is over after a third of that without a failure in any process
      const timing = [outageMs, Math.round(outageMs / 3), gapMs];
      const id = await runSaw([seenKey(part), pending.list, last], [part, ...seen, ...timing]);
      return id === "" ? undefined : String(id);
    },
    async state(): Promise<{ open: Outage[]; last: Past | undefined }> {
      const open = await Promise.all(
        parts.map(async (part): Promise<Outage[]> => {
          const { id = "", since } = await redis.hgetall(seenKey(part));
          return id === "" ? [] : [{ id, part, since: Number(since) }];
        }),
      );
      const text = await redis.get(last);
      return { open: open.flat(), last: text === null ? undefined : fromList(text) };
    },

    /** Outages that are over and not told of yet, each as text that `read` reads. */
    pending,
    read: fromList,
    lookLater: (outage: Past, inMs: number) => pending.later(onList(outage), inMs),
    async forget(outage: Past): Promise<void> {
      await redis
        .multi()
        .zrem(pending.list, pending.memberOf(onList(outage)))
        .del(refusedKey(outage.id))
        .exec();
    },
    /** What a process had to refuse during this outage, each once. */
    async keepRefused(id: string, refused: readonly RefusedInteraction[]): Promise<void> {
      const byId = new Map(refused.map((one) => [one.id, JSON.stringify(one)]));
      await redis.multi().hset(refusedKey(id), byId).pexpire(refusedKey(id), keptMs).exec();
    },
    async refused(id: string): Promise<RefusedInteraction[]> {
      const texts = await redis.hvals(refusedKey(id));
      return texts.map((text) => JSON.parse(text) as RefusedInteraction);
    },
  };
}

/** Limits of what is kept in memory while Redis is unavailable. */
const maxRefused = 100;
const maxWords = 300;

export type Watch = ReturnType<typeof createDependencyMonitor>;

/**
 * What this process sees of its dependencies, in memory until `report` saves it in Redis. Times are monotonic. What is shorter
 * than `outageMs` is a hiccup.
 */
export function createDependencyMonitor(
  outageMs: number,
  nameOf: (interaction: RefusedInteraction) => Promise<string | undefined>,
) {
  const seen = new Map<Part, { failed?: { first: number; last: number }; answeredAt?: number }>();
  const refused = new Map<string, RefusedInteraction>();

  function failed(part: Part, first: number, last = first): void {
    const { failed: before, answeredAt = 0 } = seen.get(part) ?? {};
    // An outage begins with its first failure, however late that is reported; an answer has ended what failed before
    const isSame = before && answeredAt <= before.last;
    const failures = { first: isSame ? before.first : first, last };
    seen.set(part, { ...seen.get(part), failed: failures });
  }

  /** Those still refused belong to the outage of Redis; where there is none, that was a hiccup. */
  async function handOver(those: readonly RefusedInteraction[], store: OutageStore, to?: string) {
    const named = those
      .filter(({ id }) => refused.has(id))
      .map(async (one) => ({ ...one, name: await nameOf(one).catch(() => undefined) }));
    if (to !== undefined && named.length > 0) await store.keepRefused(to, await Promise.all(named));
    for (const { id } of those) refused.delete(id);
  }

  return {
    /** Any answer counts as one; undefined is a call that shows neither. */
    saw(part: Exclude<Part, "redis">, what: "answer" | "silence" | undefined): void {
      const now = performance.now();
      if (what === "silence") failed(part, now);
      if (what === "answer") seen.set(part, { ...seen.get(part), answeredAt: now });
    },
    /** Redis didn't take it, or didn't say so, and the person read that. */
    refused(interaction: RefusedInteraction): void {
      if (refused.size >= maxRefused) return;
      const words = interaction.words?.slice(0, maxWords);
      refused.set(interaction.id, { ...interaction, words });
    },
    /** Taken after all: Slack redelivers events. */
    taken: (interactionId: string): void => void refused.delete(interactionId),
    /** How long Redis has been unavailable to this process, if it is. */
    redisAwayMs(): number | undefined {
      const first = seen.get("redis")?.failed?.first;
      return first === undefined ? undefined : performance.now() - first;
    },
    /** Saves it in Redis. Rejects while Redis is unavailable; nothing is lost then. */
    async report(store: OutageStore): Promise<void> {
      const began = performance.now();
      const until = [...refused.values()];
      // That Redis takes a report is its answer
      const reported = new Map(seen).set("redis", { ...seen.get("redis"), answeredAt: began });
      try {
        const told = [...reported].map(async ([part, { failed: was, answeredAt }]) => {
          const failedAgo = was && { first: began - was.first, last: began - was.last };
          const answeredAgo = answeredAt && began - answeredAt;
          return [part, await store.saw({ part, failedAgo, answeredAgo }, outageMs)] as const;
        });
        const outages = new Map(await Promise.all(told));
        await handOver(until, store, outages.get("redis"));
      } catch (error) {
        failed("redis", began, performance.now());
        throw error;
      }
      for (const [part, was] of reported)
        if (part === "redis" || seen.get(part) === was) seen.delete(part);
    },
  };
}
