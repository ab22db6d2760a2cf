import { createHmac, hkdfSync, randomUUID, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Keys,
  type RedisClient,
  defineScript,
  redisTimeLua,
  redisTrouble,
} from "../../redis/redis.ts";
import { parseJson } from "../../text/parse-json.ts";
import { type WebData, at } from "../json.ts";
import type { WebAnswer } from "../web-answer.ts";

/**
 * Returns the stored answer if it is young enough and nothing has changed since. Otherwise it
 * decides which process asks Slack now; only one at a time does.
 *
 * KEYS answer, lease, changes
 * ARGV how old it may be (ms), how old while Slack limits (ms), token, how long a lease lasts (ms),
 * the token that was waited for
 * → {known|limited, at, generation, age, text, mac}, {ask, now, generation}, {wait, token},
 * {failed, the failure}
 */
const lookScript = `${redisTimeLua}
local generation = redis.call('GET', KEYS[3]) or '0'
local kept = redis.call('HMGET', KEYS[1], 'at', 'generation', 'text', 'mac')
local age = -1
if kept[1] and kept[2] == generation then age = now - tonumber(kept[1]) end
local function give(how) return {how, kept[1], generation, age, kept[3], kept[4]} end
if age >= 0 and age <= tonumber(ARGV[1]) then return give('known') end
local state, token, failure = string.match(redis.call('GET', KEYS[2]) or '', '^(%a+):([^:]*):?(.*)$')
if state == 'asking' then return {'wait', token} end
if state == 'failed' and token == ARGV[5] then return {'failed', failure} end
if state == 'limited' then
  if age >= 0 and age <= tonumber(ARGV[2]) then return give('limited') end
  return {'limited', '', '', redis.call('PTTL', KEYS[2])}
end
redis.call('SET', KEYS[2], 'asking:' .. ARGV[3] .. ':', 'PX', ARGV[4])
return {'ask', now, generation}
`;

/**
 * Stores an answer, unless a newer one is stored, and ends the lease.
 *
 * KEYS answer, lease   ARGV token, when it was asked for, generation, text, mac, how long it is
 * kept (ms)
 */
const keepScript = `
local was = redis.call('HGET', KEYS[1], 'at')
if not was or tonumber(was) <= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'at', ARGV[2], 'generation', ARGV[3], 'text', ARGV[4], 'mac', ARGV[5])
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end
if redis.call('GET', KEYS[2]) == 'asking:' .. ARGV[1] .. ':' then redis.call('DEL', KEYS[2]) end
return 1
`;

/**
 * Ends the lease with what went wrong, for the processes that wait.
 *
 * KEYS lease   ARGV token, state and more, how long (ms)
 */
const failScript = `
if redis.call('GET', KEYS[1]) == 'asking:' .. ARGV[1] .. ':' then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
`;

/** A call to Slack ends within 8 s. */
const leaseMs = 10_000;
const lookEveryMs = 30;
const longestLimitMs = 60_000;
/** Long enough for the processes that wait. One that asks later tries again. */
const failureKeptMs = 1_000;

/**
 * The failure that another process stored. It isn't authenticated, so it never counts as a
 * successful answer.
 */
function failureIn(text: string): WebAnswer {
  const failure = parseJson(text);
  return at(failure, "ok") === false
    ? (failure as WebAnswer)
    : { ok: false, kind: "lost", reason: "another process got no answer" };
}

export type SharedAnswer = ReturnType<typeof createSharedAnswer>;

/**
 * One answer of Slack's for all processes, so that together they stay below its limits. It counts
 * for as long as each process would remember it, by Redis's clock from when Slack was asked, and
 * only until the counter `changes` moves. It is authenticated with `secret`, which all processes
 * have and Redis doesn't, so an answer that was written there by hand is ignored. Without Redis,
 * each process asks for itself.
 */
export function createSharedAnswer(options: {
  redis: RedisClient;
  key: Keys;
  /** The subject of the answer. */
  name: string;
  /** The key of the counter. */
  changes: string;
  secret(): string;
}) {
  const { redis, key, name, changes } = options;
  const look = defineScript(redis, "gatehouseLookAtAnswer", lookScript);
  const keep = defineScript(redis, "gatehouseKeepAnswer", keepScript);
  const fail = defineScript(redis, "gatehouseFailAnswer", failScript);

  function macOf(id: string, askedAt: number, generation: string, text: string): string {
    const derived = hkdfSync("sha256", options.secret(), "", "gatehouse shared answer", 32);
    const signed = JSON.stringify([key.namespace, name, id, askedAt, generation, text]);
    return createHmac("sha256", Buffer.from(derived)).update(signed).digest("base64url");
  }

  function isAuthentic(mac: string, expected: string): boolean {
    const [given, wanted] = [Buffer.from(mac), Buffer.from(expected)];
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }

  type Asked = { answer: WebAnswer; ageMs: number };

  async function shared(
    { id, atMostMs, limitedMs }: { id: string; atMostMs: number; limitedMs: number },
    ask: () => Promise<WebAnswer>,
  ): Promise<Asked> {
    const [answerKey, lease] = [key(name, id), key(name, id, "asking")];
    const token = randomUUID();
    const until = performance.now() + leaseMs;
    let waitedFor = "";
    let mayUse = [atMostMs, limitedMs];
    while (performance.now() < until) {
      const args = [...mayUse, token, leaseMs, waitedFor];
      const fields = (await look([answerKey, lease, changes], args)) as (string | number)[];
      const [how, first = "", second = "", third = ""] = fields;
      if (how === "wait") {
        waitedFor = String(first);
        await sleep(lookEveryMs);
      } else if (how === "failed") {
        return { answer: failureIn(String(first)), ageMs: 0 };
      } else if (how === "ask") {
        const asking = {
          answerKey,
          lease,
          token,
          id,
          at: Number(first),
          generation: String(second),
        };
        const asked = await askForAll(asking, ask);
        if (asked) return asked;
      } else if (fields.length > 4) {
        const [text, mac] = fields.slice(4).map(String);
        const isOurs = isAuthentic(mac ?? "", macOf(id, Number(first), String(second), text ?? ""));
        if (isOurs)
          return {
            answer: { ok: true, data: parseJson(text ?? "") as WebData },
            ageMs: Number(third),
          };
        // It was written by someone else, or with another bot token.
        mayUse = [-1, -1];
      } else {
        const retryAfterMs = Math.max(0, Number(third));
        return { answer: { ok: false, kind: "limited", retryAfterMs }, ageMs: 0 };
      }
    }
    return { answer: { ok: false, kind: "lost", reason: "no process got an answer" }, ageMs: 0 };
  }

  /**
   * Asks Slack for all processes. Resolves with undefined while Slack limits calls, because an
   * earlier answer may still count.
   */
  async function askForAll(
    asking: Record<"answerKey" | "lease" | "token" | "id" | "generation", string> & { at: number },
    ask: () => Promise<WebAnswer>,
  ): Promise<Asked | undefined> {
    const { answerKey, lease, token, id, at: askedAt, generation } = asking;
    const answer = await ask();
    try {
      if (answer.ok) {
        const text = JSON.stringify(answer.data);
        const mac = macOf(id, askedAt, generation, text);
        await keep([answerKey, lease], [token, askedAt, generation, text, mac, 2 * longestLimitMs]);
      } else if (answer.kind === "limited") {
        const limitMs = Math.min(longestLimitMs, Math.max(1, answer.retryAfterMs));
        await fail([lease], [token, "limited::", limitMs]);
        return undefined;
      } else
        await fail([lease], [token, `failed:${token}:${JSON.stringify(answer)}`, failureKeptMs]);
    } catch (error) {
      // The other processes ask for themselves once the lease ends.
      if (redisTrouble(error) === undefined) throw error;
    }
    return { answer, ageMs: 0 };
  }

  return {
    /**
     * The answer to `ask`, at most `atMostMs` old, or at most `limitedMs` while Slack limits calls.
     * `id` names the question.
     */
    async get(
      how: { id: string; atMostMs: number; limitedMs: number },
      ask: () => Promise<WebAnswer>,
    ): Promise<Asked> {
      let isAsked = false;
      const askOnce = () => {
        isAsked = true;
        return ask();
      };
      try {
        return await shared(how, askOnce);
      } catch (error) {
        if (redisTrouble(error) === undefined || isAsked) throw error;
        return { answer: await ask(), ageMs: 0 };
      }
    },
  };
}
