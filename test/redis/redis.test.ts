import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLog, silentLog } from "../../src/log/log.ts";
import { parseRedisUrl } from "../../src/config/redis-address.ts";
import { checkRedis, volatileProblem } from "../../src/redis/check.ts";
import {
  withoutFloods,
  createKeys,
  connectRedis,
  defineScript,
  redisTrouble,
  type RedisClient,
} from "../../src/redis/redis.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { connectImpatiently, privateRedis, testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

const gone = (redis: RedisClient) => until(() => redis.status).not.toBe("ready");
const back = (redis: RedisClient) => until(() => redis.status).toBe("ready");

describe("commands that are asked in one turn", () => {
  it("reach Redis together, each with its own answer or error", async () => {
    await using server = await privateRedis();
    const client = await connectRedis(server.url, "commands", silentLog());
    onTestFinished(() => client.disconnect());
    const reads = async () =>
      Number(/total_reads_processed:(\d+)/.exec(await client.info("stats"))?.[1]);
    await client.set("list", "no list");
    const before = await reads();
    const asked = Array.from({ length: 100 }, (_, n) =>
      n === 50 ? client.llen("list") : client.incr("count"),
    );
    const ends = await Promise.allSettled(asked);
    // One for all of them, and the question itself
    expect((await reads()) - before).toBeLessThanOrEqual(3);
    expect(ends.filter(({ status }) => status === "rejected")).toHaveLength(1);
    expect(ends[50]).toMatchObject({ reason: { message: expect.stringMatching(/^WRONGTYPE/) } });
    expect(ends[99]).toEqual({ status: "fulfilled", value: 99 });
  });
});

describe("the address of Redis", () => {
  it("is one server with user, password, database and TLS", () => {
    expect(parseRedisUrl("rediss://bot:p%40ss@cache.example:6380/2")).toEqual({
      mode: "single",
      nodes: [{ host: "cache.example", port: 6380 }],
      login: { username: "bot", password: "p@ss" },
      db: 2,
      tls: true,
      shown: "cache.example:6380",
    });
  });

  it("is a Cluster when several are listed, with what the first one says", () => {
    expect(parseRedisUrl("redis://:secret@a:7000, b:7001 ,redis://[::1]:7002")).toEqual({
      mode: "cluster",
      nodes: [
        { host: "a", port: 7000 },
        { host: "b", port: 7001 },
        { host: "::1", port: 7002 },
      ],
      login: { password: "secret" },
      db: 0,
      tls: false,
      shown: "a:7000, b:7001, ::1:7002",
    });
  });

  it("is the primary that sentinels know by a name, with a database and TLS", () => {
    expect(parseRedisUrl("rediss-sentinel://bot:p%40ss@a:26380,b,[::1]:26381/main/2")).toEqual({
      mode: "sentinel",
      name: "main",
      nodes: [
        { host: "a", port: 26_380 },
        { host: "b", port: 26_379 },
        { host: "::1", port: 26_381 },
      ],
      login: { username: "bot", password: "p@ss" },
      db: 2,
      tls: true,
      shown: "main of a:26380, b:26379, ::1:26381",
    });
    expect(parseRedisUrl("redis-sentinel://a/main")).toMatchObject({ db: 0, tls: false });
  });

  it.each([
    "",
    "redis-sentinel://a:26379",
    "redis-sentinel://a:26379/main/x",
    "redis-sentinel://a:26379/main/0/hunter22",
    "redis-sentinel://:hunter22@/main",
    "redis-sentinel://a/main?x=hunter22",
    "localhost:6379",
    "http://localhost",
    "redis://",
    "redis://h/x",
    "redis://h:1?x=hunter22",
    "redis://a:1/3,b:2",
    "redis://a:1,rediss://b:2",
    "redis://:%zz@hunter22",
  ])("is refused without being repeated: %s", (text) => {
    expect(() => parseRedisUrl(text)).toThrow(expect.not.stringContaining("hunter22"));
  });
});

describe("keys", () => {
  it("carry one hash tag, so that one script may touch several in a Cluster", () => {
    const key = createKeys();
    expect(key("request", "r1", 2)).toBe("{gatehouse}:request:r1:2");
    expect(key.prefix).toBe("{gatehouse}");
    expect(createKeys("test-1")("lock")).toBe("{test-1}:lock");
    expect(() => createKeys("a}b")).toThrow("not a namespace");
  });
});

describe("a connection for commands", () => {
  it("refuses at once while Redis is away, and works again by itself when it is back", async () => {
    await using server = await privateRedis();
    const lines: string[] = [];
    const full = createLog({ level: "info", write: (line) => lines.push(line) });
    const log = withoutFloods(full, async () => true);
    const redis = await connectRedis(server.url, "commands", log);
    await redis.set("a", "1");
    await server.kill();
    await gone(redis);
    await expect(redis.incr("a")).rejects.toThrow("Stream isn't writeable");
    await server.start();
    await back(redis);
    expect(await redis.get("a")).toBe("1"); // the append-only file survived SIGKILL
    expect(lines.filter((line) => line.includes("redis.lost")).length).toBeLessThanOrEqual(1);
    expect(lines.filter((line) => line.includes('"event":"redis.error"'))).toEqual([]);
    log.close();
    redis.disconnect();
  });

  it("gives up on a command after a second when Redis hangs, and doesn't send it again", async () => {
    await using server = await startRedis();
    const redis = await connectImpatiently(server.url, "commands");
    expect(redis.options).toMatchObject({ commandTimeout: 1_000, socketTimeout: 4_000 });
    process.kill(server.pid, "SIGSTOP");
    await expect(redis.incr("n")).rejects.toThrow("timed out");
    process.kill(server.pid, "SIGCONT");
    await until(() => redis.set("back", "1").catch(() => undefined));
    const other = await connectRedis(server.url, "commands", silentLog());
    expect(Number(await other.get("n"))).toBeLessThanOrEqual(1);
    redis.disconnect();
    other.disconnect();
  });

  it("says at the start where it looked and what to check when nothing answers", async () => {
    await expect(
      connectRedis("redis://:hunter22@127.0.0.1:1", "commands", silentLog(), { patienceMs: 100 }),
    ).rejects.toMatchObject({
      name: "UserError",
      message: expect.stringMatching(/^Redis at 127\.0\.0\.1:1 can't be used: .*ECONNREFUSED/),
      hint: expect.stringContaining("REDIS_URL"),
    });
  });

  it("stops at once when the password is wrong", async () => {
    await using server = await startRedis({ args: ["--requirepass", "right-one"] });
    const wrong = server.url.replace("//", "//:wrong-one@");
    await expect(connectRedis(wrong, "commands", silentLog())).rejects.toThrow(/WRONGPASS/);
    const right = await connectRedis(
      server.url.replace("//", "//:right-one@"),
      "worker",
      silentLog(),
    );
    expect(await right.ping()).toBe("PONG");
    right.disconnect();
  });

  it.each([
    ["another password", "right-one", "Redis refuses Gatehouse's user or password"],
    ["a password at all", "", "Redis asks Gatehouse for a password"],
  ])("says so when Redis later wants %s, and logs it once", async (_, first, words) => {
    await using server = await startRedis({ args: first ? ["--requirepass", first] : [] });
    const url = first ? server.url.replace("//", `//:${first}@`) : server.url;
    const lines: string[] = [];
    const full = createLog({ level: "info", write: (line) => void lines.push(line) });
    const log = withoutFloods(full, async () => false);
    const redis = await connectImpatiently(url, "commands", { log });
    const admin = await connectRedis(url, "worker", silentLog());
    await admin.config("SET", "requirepass", "another-one");
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no").catch(() => undefined);
    const why = () => redis.get("x").then(String, (error: unknown) => redisTrouble(error));
    await until(why).toBe(words);
    await until(() => lines.filter((line) => /WRONGPASS|NOAUTH/.test(line)).length).toBe(1);
    expect(lines.filter((line) => /WRONGPASS|NOAUTH/.test(line))).toEqual([
      expect.stringContaining("check the user and password in REDIS_URL"),
    ]);
    redis.disconnect();
    admin.disconnect();
    log.close();
  });

  it("waits for a Redis that comes up a moment later", async () => {
    await using server = await privateRedis();
    await server.stop();
    const connecting = connectRedis(server.url, "commands", silentLog(), { patienceMs: 600_000 });
    await server.start();
    const redis = await connecting;
    expect(await redis.ping()).toBe("PONG");
    redis.disconnect();
  });
});

describe("a connection for workers", () => {
  it("waits for Redis instead of failing, because a blocking read must outlive an outage", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "worker", silentLog());
    await server.kill();
    await gone(redis);
    const waiting = redis.set("later", "1");
    await server.start();
    expect(await waiting).toBe("OK");
    redis.disconnect();
  });
});

describe("a Cluster", () => {
  it("is reached through a list of nodes and runs a script over several keys of one namespace", async () => {
    await using node = await startRedis({
      args: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"],
    });
    const admin = new Redis(node.url);
    await admin.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await until(() => admin.call("CLUSTER", "INFO")).toContain("cluster_state:ok");
    const redis = await connectRedis(`${node.url},127.0.0.1:${node.port}`, "commands", silentLog());
    const key = createKeys();
    const both = defineScript(
      redis,
      "both",
      "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[2])",
    );
    expect(await both([key("a"), key("a")], [7])).toBe("7");
    expect(await checkRedis(redis, { allowVolatile: false })).toEqual({ kind: "ok" });
    redis.disconnect();
    admin.disconnect();
  });
});

describe("a script", () => {
  it("is sent again by itself after Redis has forgotten it", async () => {
    await using world = await testRedis();
    const add = defineScript(
      world.redis,
      "gatehouseAdd",
      "return redis.call('INCRBY', KEYS[1], ARGV[1])",
    );
    expect(await add([world.key("n")], [2])).toBe(2);
    expect(await add([world.key("n")], [2])).toBe(4);
    await world.redis.script("FLUSH");
    expect(await add([world.key("n")], ["3"])).toBe(7);
  });
});

describe("what Redis keeps", () => {
  it("is enough with an append-only file and without eviction", async () => {
    await using world = await testRedis();
    expect(await checkRedis(world.redis, { allowVolatile: false })).toEqual({ kind: "ok" });
  });

  it.each([
    { args: ["--appendonly", "no"], sentence: "Set `appendonly yes`" },
    { args: ["--maxmemory-policy", "allkeys-lru"], sentence: "maxmemory-policy is allkeys-lru" },
  ])("isn't enough with $args, and the sentence mends it", async ({ args, sentence }) => {
    await using server = await startRedis({ args });
    const redis = await connectRedis(server.url, "commands", silentLog());
    expect(await checkRedis(redis, { allowVolatile: false })).toMatchObject({
      kind: "volatile",
      sentence: expect.stringContaining(sentence),
      allowed: false,
    });
    expect(await checkRedis(redis, { allowVolatile: true })).toMatchObject({
      kind: "volatile",
      allowed: true,
    });
    redis.disconnect();
  });

  it("is known from INFO where CONFIG is forbidden, and unchecked where both are", async () => {
    await using server = await startRedis({ args: ["--appendonly", "no"] });
    const admin = await connectRedis(server.url, "commands", silentLog());
    await admin.call("ACL", "SETUSER", "bot", "on", ">pass-of-bot", "~*", "&*", "+@all", "-config");
    const url = server.url.replace("//", "//bot:pass-of-bot@");
    const redis = await connectRedis(url, "commands", silentLog());
    expect(await checkRedis(redis, { allowVolatile: false })).toMatchObject({ kind: "volatile" });
    await admin.call("ACL", "SETUSER", "bot", "-info");
    expect(await checkRedis(redis, { allowVolatile: false })).toEqual({
      kind: "unchecked",
      sentence: expect.stringContaining(
        "Check that it has: `appendonly yes`, `maxmemory-policy noeviction`.",
      ),
    });
    redis.disconnect();
    admin.disconnect();
  });

  it("may be replayed by the user default where Gatehouse is that user, whatever that one may not do", async () => {
    const rules = "default on nopass ~* &* +@all -@dangerous +info";
    await using server = await privateRedis(["--user", ...rules.split(" ")]);
    const redis = await connectRedis(server.url, "commands", silentLog());
    expect(await checkRedis(redis, { allowVolatile: false })).toEqual({ kind: "ok" });
    redis.disconnect();
  });

  it("isn't enough when the append-only file can't be written", () => {
    expect(
      volatileProblem({
        appendOnly: "1",
        policy: "noeviction",
        lastWrite: "err",
        replaysAll: true,
      }),
    ).toMatchObject({ sentence: expect.stringContaining("free space"), mayPass: true });
  });
});

describe("a database that Redis hasn't", () => {
  it("is refused at the start, naming REDIS_URL, instead of working in database 0", async () => {
    await using server = await privateRedis(["--databases", "4"]);
    await expect(connectRedis(`${server.url}/4`, "commands", silentLog())).rejects.toMatchObject({
      name: "ConfigError",
      message: expect.stringMatching(/REDIS_URL: Redis at \S+ has no database 4/),
    });
    const redis = await connectRedis(`${server.url}/3`, "commands", silentLog());
    await redis.set("a", "1");
    redis.disconnect();
  });

  it("is refused after a restart, too", async () => {
    await using server = await privateRedis(["--databases", "4"]);
    const redis = await connectRedis(`${server.url}/3`, "commands", silentLog());
    const errors: string[] = [];
    // not its log, which is quiet for 10 s after an attempt that found no server yet
    redis.on("error", ({ message }) => errors.push(message));
    await server.stop();
    // A database 3 in the file would not be loaded
    await server.start(["--databases", "2"]);
    await until(() => errors.some((message) => /DB index/.test(message)));
    await expect(redis.set("a", "1")).rejects.toThrow();
    redis.disconnect();
  });
});
