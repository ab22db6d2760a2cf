import { Redis } from "ioredis";
import { certificateHint } from "../config/authorities.ts";
import { type Live, currentValue } from "../config/changing-file.ts";
import type { ClientCertificate } from "../config/compute-tls.ts";
import { ConfigError } from "../config/config-error.ts";
import { parseRedisUrl, type RedisAddress } from "../config/redis-address.ts";
import { deadlineMs, within } from "../deadline.ts";
import { codeOf, messageOf, UserError } from "../errors.ts";
import { type LogFields, type Log, silentLog } from "../log/log.ts";
import { primaryConnector } from "./primary.ts";
import { setTimeout as sleep } from "node:timers/promises";

export type RedisClient = Redis;

/**
 * The purpose of a connection. On one for `commands`, a command fails within a second, isn't queued
 * while Redis is unavailable, and is never sent twice. A connection for `waits` is the same, but
 * allows more time, for WAIT. A connection for `worker` is for BullMQ's blocking reads, which wait
 * for Redis.
 */
export type RedisPurpose = "commands" | "waits" | "worker";

function options(purpose: RedisPurpose) {
  const common = {
    lazyConnect: true,
    connectTimeout: deadlineMs(5_000),
    connectionName: `gatehouse-${purpose}`,
    retryStrategy: reconnectDelay,
    // The server that refused is no longer the primary of our keys. Reconnecting finds the primary;
    // the command isn't repeated.
    reconnectOnError: (error: Error): 1 | false =>
      /^(READONLY|MOVED)/.test(error.message) ? 1 : false,
  };
  // `socketTimeout` gives up a server that vanished without closing the connection. BullMQ's reads
  // block for up to 10 s.
  if (purpose === "worker")
    return { ...common, maxRetriesPerRequest: null, socketTimeout: deadlineMs(12_000) };
  return {
    ...common,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: deadlineMs(purpose === "waits" ? 10_000 : 1_000),
    socketTimeout: deadlineMs(purpose === "waits" ? 12_000 : 4_000),
    autoResendUnfulfilledCommands: false,
  };
}

/**
 * Backs off to about a second, with jitter so that a fleet doesn't reconnect at the same moment.
 */
function reconnectDelay(times: number): number {
  return Math.min(1_000, 50 * 2 ** Math.min(times - 1, 10)) + Math.floor(Math.random() * 200);
}

interface Shown {
  /** The client certificate for Redis over TLS. It is read again for each connection. */
  certificate?: (() => ClientCertificate | undefined) | undefined;
}

/**
 * Opens one connection to the primary and waits until it answers. After an outage or a failover it
 * reconnects by itself. Throws a UserError when Redis can't be reached within `patienceMs`, and a
 * ConfigError at once when Redis refuses the password or doesn't have the database. Each reconnect
 * uses the login that `url` has at that time; a changed host in `url` has no effect.
 */
export async function connectRedis(
  url: Live,
  purpose: RedisPurpose,
  log: Log,
  {
    patienceMs = 10_000,
    namespace = "gatehouse",
    certificate,
  }: { patienceMs?: number; namespace?: string } & Shown = {},
): Promise<RedisClient> {
  const address = parseRedisUrl(currentValue(url));
  const { login, db, tls } = address;
  const renewLogin = (ofClient: object) => {
    address.login = parseRedisUrl(currentValue(url)).login;
    Object.assign(ofClient, { username: undefined, password: undefined, ...address.login });
  };
  const redis = new Redis({
    ...options(purpose),
    ...login,
    ...(tls && { tls: {} }),
    db,
    Connector: primaryConnector(address, namespace, { renewLogin, certificate }),
  });
  reportErrors(redis, purpose, log);
  try {
    await ready(redis, address, patienceMs);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  return redis;
}

const noDatabase = /^ERR (DB index|invalid DB)/i;

/**
 * Calls `look` with a connection that is closed afterwards, as commands in a terminal need it.
 * Resolves with its result.
 */
export async function withRedis<T>(
  url: string,
  connection: { namespace?: string | undefined } & Shown,
  look: (redis: RedisClient, key: Keys) => Promise<T>,
): Promise<T> {
  const key = createKeys(connection.namespace);
  const how = { namespace: key.namespace, patienceMs: 3_000, certificate: connection.certificate };
  const redis = await connectRedis(url, "commands", silentLog(), how);
  try {
    return await look(redis, key);
  } finally {
    redis.disconnect();
  }
}

/** `withoutFloods` later summarizes the many warnings of an outage in one line. */
function reportErrors(redis: RedisClient, purpose: RedisPurpose, log: Log): void {
  let lost = false;
  redis.on("error", (error: Error) => {
    lost = true;
    // ioredis would otherwise continue in database 0.
    if (noDatabase.test(error.message)) redis.disconnect(true);
    loginTrouble = ofLogin.test(error.message) ? redisTrouble(error) : undefined;
    log.warn("redis.error", { purpose, error });
  });
  redis.on("ready", () => {
    if (lost) log.debug("redis.reconnected", { purpose });
    lost = false;
    loginTrouble = undefined;
  });
}

async function ready(redis: RedisClient, address: RedisAddress, patienceMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { shown, db } = address;
  let last = "no answer";
  let hint: string | undefined;
  const unusable = () => `Redis at ${shown} can't be used: ${last}`;
  const refuse = (problem: string) => reject(new ConfigError([`REDIS_URL: ${problem}`]));
  const onError = (error: Error) => {
    const refusal = tlsHint(error);
    // A server that refuses a certificate may also just cut the connection. An earlier error that
    // says why is kept.
    if (refusal === undefined && hint !== undefined) return;
    last = messageOf(error);
    hint = refusal;
    if (noDatabase.test(last)) refuse(`Redis at ${shown} has no database ${db}`);
    if (ofLogin.test(last)) refuse(`${unusable()}; check the user and password`);
  };
  redis.on("ready", resolve);
  redis.on("error", onError);
  redis.connect().catch(() => {}); // ioredis keeps trying; failures arrive as events.
  try {
    await within(patienceMs, promise, () => {
      const scheme = address.tls ? " (rediss:// is for a port that speaks TLS)" : "";
      const usual = `check REDIS_URL${scheme}, and that Redis is running and reachable from here`;
      throw new UserError(unusable(), hint ?? usual);
    });
  } finally {
    redis.off("ready", resolve);
    redis.off("error", onError);
  }
}

/**
 * The next step when a certificate was refused, the server's or ours. Undefined for other errors.
 */
export function tlsHint(error: Error): string | undefined {
  const code = codeOf(error);
  if (/ALERT_CERTIFICATE_REQUIRED|ALERT_HANDSHAKE_FAILURE/.test(code))
    return "Redis asks for a client certificate: set REDIS_CERT_FILE and REDIS_KEY_FILE";
  if (/ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_EXPIRED)/.test(code))
    return "Redis refuses the certificate in REDIS_CERT_FILE: use one of an authority that it trusts (tls-ca-cert-file)";
  return certificateHint(error);
}

type Script = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

/**
 * Defines a Lua script that ioredis sends by its hash (EVALSHA). No other script on the connection
 * may have the same `name`.
 */
export function defineScript(redis: RedisClient, name: string, lua: string): Script {
  redis.defineCommand(name, { lua });
  // ioredis adds the command as a method, which its types can't know.
  const run: unknown = Reflect.get(redis, name);
  if (typeof run !== "function") throw new Error(`ioredis did not define ${name}`);
  return async (keys, args) => {
    const reply: unknown = await Reflect.apply(run, redis, [keys.length, ...keys, ...args]);
    return reply;
  };
}

/**
 * Compare-and-set of one field, which may set others with it.
 *
 * KEYS hash   ARGV field, expected value ('' for none), new value, and for each other field: its name,
 * its new value
 * → 1 when it was set
 */
const mark = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3], unpack(ARGV, 4))
return 1
`;

export const defineMark = (redis: RedisClient): Script =>
  defineScript(redis, "gatehouseMark", mark);

/** The fields of a hash. */
export type Fields = Readonly<Record<string, string>>;

/** Converts the flat list with which scripts return a hash. */
export function fromPairs(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at] ?? ""] = flat[at + 1] ?? "";
  return fields;
}

/** The fields whose names begin with `prefix`, without the prefix. */
export function fieldsNamed(prefix: string, fields: Fields): [string, string][] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(prefix))
    .map(([field, value]) => [field.slice(prefix.length), value]);
}

/**
 * Builds keys. All keys share one hash tag, because a Cluster runs a script only when all its keys
 * are in one slot.
 */
export interface Keys {
  /** `key("request", id)` is `{gatehouse}:request:<id>`. */
  (...parts: readonly (string | number)[]): string;
  /** `{gatehouse}`: BullMQ's `prefix`, and the beginning of every key. */
  readonly prefix: string;
  readonly namespace: string;
}

/** Where an installation keeps what it stores. */
export interface RedisPlace {
  redis: RedisClient;
  key: Keys;
}

/** Each test or installation on a shared Redis uses its own namespace. */
export function createKeys(namespace = "gatehouse"): Keys {
  if (!/^[\w.-]{1,80}$/.test(namespace)) throw new Error(`not a namespace: ${namespace}`);
  const prefix = `{${namespace}}`;
  const key = (...parts: readonly (string | number)[]) => [prefix, ...parts].join(":");
  return Object.assign(key, { prefix, namespace });
}

/** Redis time in milliseconds: the one clock that all processes share. */
export async function redisNow(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/**
 * Redis time may fall back by this much (ms) without counting as set back. A failover between
 * servers whose clocks agree can cause that.
 */
export const setBackMs = 1_000;

/**
 * Whether a stored time is from before Redis's clock was set back: it lies in the future, so
 * comparing it with now is meaningless.
 */
export const isBeforeSetBack = (stored: number | undefined, now: number): boolean =>
  stored !== undefined && stored > now + setBackMs;

/** Lua code that sets `now` to Redis time in milliseconds. */
export const redisTimeLua = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

type WriteRefusal = "full" | "disk" | "read-only" | "replicas" | "other";

/** The reasons why a Redis that answers takes no writes, by the code that begins its error. */
const refusals: readonly (readonly [
  code: RegExp,
  words: string,
  why: Exclude<WriteRefusal, "other">,
])[] = [
  [/^OOM /, "Redis is full", "full"],
  [/^MISCONF /, "Redis can't write to its disk", "disk"],
  [/^READONLY /, "Redis is a read-only replica", "read-only"],
  [/^NOREPLICAS /, "Redis can't reach its replicas", "replicas"],
];

const isDown = "Redis is down";

/**
 * Errors that mean trouble with Redis. Redis itself answers with codes; ioredis only has sentences.
 */
const troubles: readonly (readonly [said: RegExp, words: string])[] = [
  ...refusals.map(([code, words]) => [code, words] as const),
  [/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|LOADING) /, "Redis is changing its primary"],
  [/^WRONGPASS |^ERR (AUTH|invalid password)/, "Redis refuses Gatehouse's user or password"],
  [/^NOAUTH /, "Redis asks Gatehouse for a password"],
  [/^Command timed out$/, "Redis answers slowly"],
  [
    /^(Connection is closed|Stream isn't writeable|Reached the max retries|Command aborted)/,
    isDown,
  ],
];

/**
 * Describes a problem with Redis in words for a person. Undefined for an error that isn't about
 * Redis.
 */
export function redisTrouble(error: unknown): string | undefined {
  const text = messageOf(error);
  const words = troubles.find(([known]) => known.test(text))?.[1];
  // Commands fail alike without a connection, whatever the reason for that.
  return words === isDown ? (loginTrouble ?? words) : words;
}

/** Why the last attempt to connect was refused, if that was for the login of this process. */
let loginTrouble: string | undefined;

/** Errors by which a Redis that answers says that it doesn't let this user in, or act. */
const ofLogin = /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)\b/i;

/** Why a Redis that answers refused a write. Undefined when Redis didn't answer. */
export function writeRefusal(error: unknown): WriteRefusal | undefined {
  const text = messageOf(error);
  const known = refusals.find(([code]) => code.test(text))?.[2];
  // An error of Redis itself begins with its code.
  return known ?? (/^(NOPERM|ERR|MOVED|CLUSTERDOWN) /.test(text) ? "other" : undefined);
}

/**
 * Finds such a refusal in the sentence of a check, which contains the words of `redisTrouble` or an
 * error of Redis itself.
 */
export function whyNoWrites(sentence: string) {
  const refusal = refusals.find(([code, words]) => code.test(sentence) || sentence.includes(words));
  return refusal && (`redis-${refusal[2]}` as const);
}

const longestWaitMs = 1_000;

/**
 * Retries an action that is safe to repeat until Redis takes it. Gives up after `patienceMs`, which
 * is longer than a failover lasts.
 */
export async function patiently<T>(act: () => Promise<T>, patienceMs = 15_000): Promise<T> {
  const until = performance.now() + patienceMs;
  for (let waitMs = 100; ; waitMs = Math.min(longestWaitMs, 2 * waitMs)) {
    try {
      return await act();
    } catch (error) {
      if (redisTrouble(error) === undefined || performance.now() > until) throw error;
      await sleep(waitMs / 2 + Math.random() * waitMs);
    }
  }
}

/** After this long without a complaint, Redis is asked whether the trouble is over (ms). */
const quietMs = 5_000;

/**
 * Limits the warnings of an outage of Redis, when everything complains many times a second. The
 * first complaint is logged as `redis.lost`, and so is the first one about a login that Redis refuses. The others are counted and logged in one line,
 * `redis.back`, once there was no complaint for five seconds and Redis `answers`. Silence alone
 * proves nothing, because a process that only tries to connect complains every ten seconds. Only
 * warnings and errors that are about Redis alone are counted.
 */
export function withoutFloods(log: Log, answers: () => Promise<boolean>): Log & { close(): void } {
  let outage:
    | { since: number; last: number; events: Map<string, number>; isOfLogin: boolean }
    | undefined;
  let timer: NodeJS.Timeout | undefined;

  function complain(event: string, fields: LogFields | undefined, why: string): void {
    const now = performance.now();
    const isOfLogin = ofLogin.test(why);
    if (!outage || (isOfLogin && !outage.isOfLogin)) {
      const hint = isOfLogin ? loginHint : undefined;
      log.warn("redis.lost", { ...fields, first: event, why, hint });
    }
    if (!outage) {
      outage = { since: now, last: now, events: new Map(), isOfLogin };
      timer = setInterval(() => void look(), quietMs / 5).unref();
    }
    outage.isOfLogin ||= isOfLogin;
    outage.last = now;
    outage.events.set(event, (outage.events.get(event) ?? 0) + 1);
  }

  const isQuiet = () => outage !== undefined && performance.now() - outage.last >= quietMs;

  async function look(): Promise<void> {
    const asked = outage;
    if (!asked || !isQuiet()) return;
    const isBack = await answers().catch(() => false);
    if (outage !== asked || !isQuiet()) return;
    if (isBack) logOutage("redis.back");
    else asked.last = performance.now();
  }

  function logOutage(event: "redis.back" | "redis.still-lost"): void {
    clearInterval(timer);
    if (!outage) return;
    const { since, last, events } = outage;
    outage = undefined;
    const complaints = [...events.values()].reduce((sum, count) => sum + count, 0);
    const seconds = Math.round((last - since) / 100) / 10;
    log.warn(event, { seconds, complaints, of: Object.fromEntries(events) });
  }

  const unless =
    (write: Log["warn"]): Log["warn"] =>
    (event, fields) => {
      const why = troubleIn(event, fields);
      if (why === undefined) write(event, fields);
      else complain(event, fields, why);
    };
  const close = () => logOutage("redis.still-lost");
  return { ...log, warn: unless(log.warn), error: unless(log.error), close };
}

const loginHint =
  "Redis answers and refuses this user: check the user and password in REDIS_URL, and the rights in Redis's ACL";

const brokenCode = /^E(CONN|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH)/;

/**
 * Describes the problem with Redis in a log line. Undefined when the line is about anything else.
 */
function troubleIn(event: string, fields: LogFields | undefined): string | undefined {
  const error = fields?.["error"] ?? fields?.["why"];
  if (error === undefined) return undefined;
  const isConnection =
    event === "redis.error" || (event === "queue.error" && brokenCode.test(codeOf(error)));
  const isRefused = ofLogin.test(messageOf(error));
  return isConnection || isRefused ? messageOf(error) : redisTrouble(error);
}
