import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { startRedis } from "../../../sandbox/ensure-redis.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { stretchDeadlines } from "../../../src/deadline.ts";
import { silentLog } from "../../../src/log/log.ts";
import { storageOf, storageProblems } from "../../../src/redis/check.ts";
import { type RedisClient, connectRedis, createKeys } from "../../../src/redis/redis.ts";
import { createDurability } from "../../../src/core/request/durability.ts";
import { createJournal, newNonce } from "../../../src/core/request/journal.ts";
import { checkLedger } from "../../../src/core/request/ledger.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { claimAndSend } from "../../../src/core/perform/send.ts";
import { claimedBy, storeRequest, requestIn, restartOf, stageOf, vmTarget } from "../asking.ts";
import { type WorkerHere, asChange, workerHere } from "../perform/worker-here.ts";
import { until } from "../../support/until.ts";

const key = createKeys("durable");
const log = silentLog();
/** How long a claim may wait for disk and replicas (ms). */
const waitMs = 60_000;

async function client(url: string, stack: AsyncDisposableStack): Promise<RedisClient> {
  return stack.adopt(await connectRedis(url, "waits", log), async (redis) => redis.disconnect());
}

async function durability(
  url: string,
  stack: AsyncDisposableStack,
  over: { replicas?: number | undefined; waitMs?: number; allowVolatile?: boolean } = {},
) {
  const redis = await client(url, stack);
  return createDurability({
    redis,
    key,
    replicas: undefined,
    allowVolatile: false,
    waitMs,
    log,
    ...over,
  });
}

/** Claims a restart as a worker does. The result has what Redis says about its replicas. */
async function claimOn(redis: RedisClient, name: string) {
  const store = createJournal(redis, key);
  const { approval: _none, ...plain } = restartOf(vmTarget(name));
  const claimed = await store.move(await storeRequest(store, plain), {
    to: stageOf("sending"),
    attempt: 1,
    why: "claimed",
    claim: { vmIds: [], nonce: newNonce() },
  });
  if (claimed.kind !== "moved") throw new Error(claimed.kind);
  return claimed;
}

/** How often Redis has run commands whose names match a pattern. */
const callsOf = async (redis: RedisClient, command: string): Promise<number> => {
  const stats = await redis.info("commandstats");
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
};

async function claimedOn(redis: RedisClient, name = "web-2"): Promise<StoredRequest> {
  const store = createJournal(redis, key);
  const { approval: _none, ...plain } = restartOf(vmTarget(name));
  return claimedBy("w-1", await storeRequest(store, plain), store);
}

/** Starts a primary that fsyncs always, and a replica that is in step with it. */
async function startPair(stack: AsyncDisposableStack) {
  const primary = stack.use(
    await startRedis({ args: ["--appendfsync", "always", "--repl-diskless-sync-delay", "0"] }),
  );
  const replica = stack.use(
    await startRedis({ args: ["--replicaof", "127.0.0.1", String(primary.port)] }),
  );
  const [redis, other] = await Promise.all([
    client(primary.url, stack),
    client(replica.url, stack),
  ]);
  await until(() => replicasOf(redis)).toBe(1);
  return { primary, replica, redis, other };
}

const replicasOf = async (redis: RedisClient) => (await storageOf(redis)).replicas;

/** Runs a worker's step from claim to send, on that worker's own Redis. */
async function send(id: string, { by }: WorkerHere): Promise<void> {
  const request = requestIn(await by.store.get(id), "authorized");
  const change = asChange(restart, { vms: [request.record.target.id] });
  await claimAndSend(request, change, { before: undefined, vmIds: [], safety: undefined }, by);
}

/**
 * Lets the primary lose its replica, take a claim, and die. The replica becomes the primary, and
 * another worker goes on.
 */
async function sendAcrossFailover(replicas: number | undefined) {
  await using stack = new AsyncDisposableStack();
  const { primary, redis, other } = await startPair(stack);
  const compute = await startSandboxCompute({ transitionMs: 20 });
  stack.defer(() => compute.close());
  const first = stack.use(await workerHere({ redis: { redis, key }, compute, workerId: "w-1" }));
  const next = stack.use(
    await workerHere({ redis: { redis: other, key }, compute, workerId: "w-2" }),
  );
  first.by.durabilityProblem = (
    await durability(primary.url, stack, { replicas, waitMs: 200 })
  ).keep;
  const { approval: _none, ...plain } = restartOf(await first.vm("web-2"));
  const { id } = (await storeRequest(first.by.store, plain)).record;
  await redis.wait(1, waitMs);
  // The replica keeps its data, and gets no more writes.
  await other.replicaof("127.0.0.1", "1");
  await until(() => replicasOf(redis)).toBe(0);
  await send(id, first);
  const sentBefore = compute.writes().length;
  await primary.kill();
  await other.replicaof("NO", "ONE");
  compute.edit.setStatus({ vm: "web-2", status: "RUNNING" });
  await send(id, next);
  const forgotten = [
    ...(await checkLedger(first.by.ledger, next.by.store, log)),
    ...(await checkLedger(next.by.ledger, next.by.store, log)),
  ];
  const freeze = await next.by.store.freezeState();
  return { sentBefore, sent: compute.writes().length, forgotten: forgotten.length, freeze };
}

describe("a claim before a failover to a replica without it", () => {
  it("is given back unsent when REDIS_REPLICAS asks for a replica, so it is sent once in all", async () => {
    const sentOnce = { sentBefore: 0, sent: 1, forgotten: 0, freeze: undefined };
    expect(await sendAcrossFailover(1)).toEqual(sentOnce);
  });

  it("is noticed without REDIS_REPLICAS: changes freeze, though both have the same attempt", async () => {
    expect(await sendAcrossFailover(undefined)).toMatchObject({
      sentBefore: 1,
      sent: 2,
      forgotten: 1,
      freeze: { reason: expect.stringContaining("Redis lost 1 sent request") },
    });
  });
});

describe("keeping claims durable", () => {
  it("costs no write when each write is on the disk and no replica is connected", async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startRedis({ args: ["--appendfsync", "always"] }));
    const redis = await client(server.url, stack);
    const claimed = await claimedOn(redis);
    expect(await (await durability(server.url, stack)).keep(claimed)).toBeUndefined();
    expect(await redis.exists(key("fence"))).toBe(0);
  });

  it.each([
    [
      "maxmemory-policy",
      "allkeys-lru",
      "noeviction",
      /^Redis may evict Gatehouse's records; nothing/,
    ],
    ["maxmemory-policy", "volatile-ttl", "noeviction", /^Redis may evict/],
    ["appendonly", "no", "yes", /^Redis keeps nothing on disk; nothing was sent$/],
  ])("ends as soon as somebody sets %s to %s, until it is %s", async (name, bad, good, why) => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startRedis({ args: ["--appendfsync", "always"] }));
    const redis = await client(server.url, stack);
    const claimed = await claimedOn(redis);
    const durable = await durability(server.url, stack);
    const accepting = await durability(server.url, stack, { allowVolatile: true });
    expect(await durable.keep(claimed, 0)).toBeUndefined();
    await redis.config("SET", name, bad);
    expect(await durable.keep(claimed, 0)).toMatch(why);
    expect(await accepting.keep(claimed, 0)).toBeUndefined();
    await redis.config("SET", name, good);
    await until(() => durable.keep(claimed, 0)).toBeUndefined();
  });

  it("ends when the user default loses its rights, by whom Redis replays what scripts wrote", async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startRedis({ args: ["--appendfsync", "always"] }));
    const redis = await client(server.url, stack);
    const claimed = await claimedOn(redis);
    await redis.call("ACL", "SETUSER", "gatehouse", "on", ">fake", "~*", "&*", "+@all");
    const url = server.url.replace("redis://", "redis://gatehouse:fake@");
    const durable = await durability(url, stack);
    expect(await durable.keep(claimed, 0)).toBeUndefined();
    await redis.call("ACL", "SETUSER", "default", "-flushall");
    expect(await durable.keep(claimed, 0)).toMatch(/drop what scripts wrote; nothing was sent$/);
  });

  it("is one wait for 50 claims together where a replica is connected, and it has them all", async () => {
    await using stack = new AsyncDisposableStack();
    const { primary, redis, other } = await startPair(stack);
    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, n) => claimedOn(redis, `web-${n}`)),
    );
    const durable = await durability(primary.url, stack);
    const waits = () => callsOf(redis, "wait");
    const kept = await Promise.all(claims.map((claimed) => durable.keep(claimed)));
    expect(kept.every((why) => why === undefined)).toBe(true);
    expect(await waits()).toBeLessThanOrEqual(2);
    for (const { record } of claims)
      expect(await other.hget(key("request", record.id), "state")).toBe("sending");
  });

  it("waits for a replica that came since Redis was asked, because the claim itself says so; the rest is asked once a minute", async () => {
    await using stack = new AsyncDisposableStack();
    const primary = stack.use(
      await startRedis({ args: ["--appendfsync", "always", "--repl-diskless-sync-delay", "0"] }),
    );
    const redis = await client(primary.url, stack);
    const durable = await durability(primary.url, stack);
    const keep = async (name: string) => {
      const { request, replicas } = await claimOn(redis, name);
      return { why: await durable.keep(request, replicas), replicas };
    };
    expect(await keep("web-1")).toEqual({ why: undefined, replicas: 0 });
    stack.use(await startRedis({ args: ["--replicaof", "127.0.0.1", String(primary.port)] }));
    await until(() => replicasOf(redis)).toBe(1);
    const asked = await callsOf(redis, "config\\|get");
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + 30_000);
    expect(await keep("web-2")).toEqual({ why: undefined, replicas: 1 });
    vi.restoreAllMocks();
    expect(await callsOf(redis, "wait")).toBe(1);
    expect(await callsOf(redis, "config\\|get")).toBe(asked);
  });

  it("isn't known while the replica or Redis hangs, nor of a claim that Redis lost", async () => {
    await using stack = new AsyncDisposableStack();
    const { primary, replica, redis } = await startPair(stack);
    const claimed = await claimedOn(redis);
    const durable = await durability(primary.url, stack, { waitMs: 200 });
    expect(await durable.keep({ ...claimed, nonce: "another" })).toMatch(/Redis lost the claim/);
    process.kill(replica.pid, "SIGSTOP");
    expect(await durable.keep(claimed)).toMatch(/fewer than 1 replica of Redis had the claim/);
    process.kill(replica.pid, "SIGCONT");
    await until(() => durable.keep(claimed)).toBeUndefined();
    process.kill(primary.pid, "SIGSTOP");
    stretchDeadlines(1);
    expect(await durable.keep(claimed)).toMatch(/too slow/);
    stretchDeadlines(30);
    process.kill(primary.pid, "SIGCONT");
    await until(() => durable.keep(claimed)).toBeUndefined();
  });

  it.each([
    [1, undefined],
    [0, "the disk of Redis had not stored the claim in time; nothing was sent"],
  ])("asks a Redis with WAITAOF for its disk, and believes its %d", async (stored, why) => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startRedis());
    const url = await withWaitAof(server.port, stored, stack);
    const claimed = await claimedOn(await client(url, stack));
    expect(await (await durability(url, stack)).keep(claimed)).toBe(why);
  });
});

describe("what is said of Redis' storage", () => {
  const good = { appendOnly: true, fsync: "always", replicas: 0, minReplicas: 0, waitAof: false };

  it.each<[over: object, wanted: number | undefined, said: readonly RegExp[]]>([
    [{}, undefined, []],
    [{ fsync: "everysec", waitAof: true }, undefined, []],
    [{ fsync: "everysec" }, undefined, [/`appendfsync` is everysec, so its last second/]],
    [{ fsync: undefined }, undefined, [/doesn't report `appendfsync`/]],
    [{ replicas: 1 }, undefined, [/`min-replicas-to-write` is 0/]],
    [{ replicas: 1, minReplicas: 1 }, 1, []],
    [{ minReplicas: 1 }, 1, [/REDIS_REPLICAS is 1, but 0 are connected: nothing is sent/]],
  ])("%j with REDIS_REPLICAS %s", (over, wanted, expected) => {
    const said = storageProblems({ ...good, ...over }, wanted).map(({ sentence }) => sentence);
    expect(said).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
  });
});

/**
 * Starts a proxy that makes a Redis before 7.2 seem to know WAITAOF. Each WAITAOF is answered, in
 * order, as if the writes were on `stored` local disks (0 or 1).
 */
async function withWaitAof(
  port: number,
  stored: number,
  stack: AsyncDisposableStack,
): Promise<string> {
  const server = createServer((socket) => {
    const redis = connect(port, "127.0.0.1");
    let rest = "";
    socket.on("data", (chunk: Buffer) => {
      const read = readCommands(rest + chunk.toString("latin1"));
      rest = read.rest;
      for (const words of read.commands) redis.write(written(answerable(words, stored)), "latin1");
    });
    redis.pipe(socket);
    redis.on("error", () => socket.destroy());
    socket.on("error", () => redis.destroy());
    socket.on("close", () => redis.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answerable(words: readonly string[], stored: number): readonly string[] {
  const [name, what, of] = words.map((word) => word.toUpperCase());
  if (name === "WAITAOF") return ["EVAL", `return {${stored}, 0}`, "0"];
  return name === "COMMAND" && what === "INFO" && of === "WAITAOF"
    ? ["COMMAND", "INFO", "WAIT"]
    : words;
}

const written = (words: readonly string[]) =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;

/** Reads the complete commands, and returns the beginning of the next one as `rest`. */
function readCommands(text: string): { commands: string[][]; rest: string } {
  const commands: string[][] = [];
  let rest = text;
  for (;;) {
    const words: string[] = [];
    let at = rest.indexOf("\r\n") + 2;
    if (at < 2) return { commands, rest };
    const count = Number(rest.slice(1, at));
    for (let n = 0; n < count; n++) {
      const end = rest.indexOf("\r\n", at);
      const length = Number(rest.slice(at + 1, end));
      if (end < 0 || rest.length < end + 4 + length) return { commands, rest };
      words.push(rest.slice(end + 2, end + 2 + length));
      at = end + 4 + length;
    }
    commands.push(words);
    rest = rest.slice(at);
  }
}
