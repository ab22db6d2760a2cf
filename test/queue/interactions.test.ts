import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { stretchDeadlines } from "../../src/deadline.ts";
import { silentLog } from "../../src/log/log.ts";
import { Interactions, NotStored } from "../../src/queue/interactions.ts";
import { type StoredInteraction, createQueues } from "../../src/queue/queues.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { privateRedis, testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

const command = (id: string, text = "vm list") => ({ id: `command:${id}`, kind: "command", text });

/** One gateway's side of the queue. What it takes over is in `taken`. */
async function gateway(
  at: { url: string; namespace: string },
  {
    heartbeatMs = 40,
    staleAfterMs = 600_000,
    now = Date.now,
    handle = async (_interaction: StoredInteraction) => undefined as void,
  } = {},
) {
  const redis = await connectRedis(at.url, "commands", silentLog());
  const connection = await connectRedis(at.url, "worker", silentLog());
  const key = createKeys(at.namespace);
  const queues = createQueues(redis, key.prefix);
  const { interactions: queue } = queues;
  const interactions = new Interactions({
    queue,
    redis,
    key,
    log: silentLog(),
    heartbeatMs,
    staleAfterMs,
    now,
    storeWithinMs: 200,
  });
  const seen = ({ id }: StoredInteraction) => key("seen", id);
  const taken: string[] = [];
  const late: string[] = [];
  const interrupted: string[] = [];
  const recovering = interactions.startRecovering({
    connection,
    async handleAbandoned(interaction, { givenUp }) {
      const list = givenUp === undefined ? taken : { "too-late": late, interrupted }[givenUp];
      list.push(interaction.id);
      await handle(interaction);
    },
  });
  /** As `kill -9`: nothing is put off, and nothing handed back. */
  const dies = () => {
    redis.disconnect();
    connection.disconnect();
  };
  onTestFinished(async () => {
    await recovering.close(100);
    await interactions.close();
    await queues.close();
    dies();
  });
  const about = { redis, key, queue, recovering, taken, late, interrupted, dies, seen };
  return Object.assign(interactions, about);
}

type Gateway = Awaited<ReturnType<typeof gateway>>;
const minute = 60_000;

/** BullMQ does so by the clock of any process that looks for jobs. */
async function makeDue({ queue }: Gateway, { id }: StoredInteraction): Promise<void> {
  const job = async () => queue.getJob(id.replaceAll(":", "/"));
  await until(async () => (await job())?.promote().then(() => "due", String)).toBe("due");
}

/** As if the last heartbeat were so long ago that its gateway counts as dead. */
async function letTimePass(at: Gateway, interaction: StoredInteraction): Promise<void> {
  const leftMs = await at.redis.pttl(at.seen(interaction));
  await at.redis.pexpire(at.seen(interaction), leftMs - 5 * minute - 1_000);
  await makeDue(at, interaction);
}

const isEmpty = ({ queue }: Gateway) =>
  until(() => queue.getJobCountByTypes("delayed", "waiting", "active")).toBe(0);

async function place() {
  const shared = await testRedis();
  onTestFinished(() => shared[Symbol.asyncDispose]());
  return { url: shared.url, namespace: shared.key.namespace };
}

describe("an interaction", () => {
  it("is a delayed job named after its delivery, once, until it is handled", async () => {
    const own = await gateway(await place());
    expect(await own.store(command("1"))).toBe("new");
    expect(await own.store(command("1"))).toBe("seen");
    const [job, ...others] = await own.queue.getDelayed();
    expect([job?.id, job?.name, job?.data]).toEqual([
      "command/1",
      "command",
      { interaction: command("1") },
    ]);
    expect(others).toEqual([]);
    await own.finish(command("1"));
    expect(await own.queue.getJobCountByTypes("delayed", "waiting", "active", "completed")).toBe(0);
    // It comes again after its end
    expect(await own.store(command("1"))).toBe("seen");
    expect(await own.queue.getDelayedCount()).toBe(0);
  });

  it("isn't known when Redis refuses its job, and may come again", async () => {
    const own = await gateway(await place());
    const add = vi.spyOn(own.queue, "add");
    add.mockRejectedValueOnce(new Error("NOPERM this user has no permissions to run 'evalsha'"));
    await expect(own.store(command("1"))).rejects.toThrow(/nothing was done/);
    expect(await own.store(command("1"))).toBe("new");
    expect(await own.queue.getDelayedCount()).toBe(1);
  });

  it("may come again when it was refused", async () => {
    const own = await gateway(await place());
    await own.store(command("1"));
    await own.forget(command("1"));
    expect(await own.store(command("1"))).toBe("new");
  });

  it("leaves no job when it only is to be recognized", async () => {
    const own = await gateway(await place());
    expect(await own.store({ id: "home:1", kind: "home" }, { isKept: false })).toBe("new");
    expect(await own.store({ id: "home:1", kind: "home" }, { isKept: false })).toBe("seen");
    expect(await own.queue.getDelayedCount()).toBe(0);
  });

  it("isn't handled again, though a copy whose gateway died, or an old backup, has its job", async () => {
    const own = await gateway(await place());
    own.recovering.take();
    await own.store(command("1"));
    await own.finish(command("1"));
    await own.queue.add("command", { interaction: command("1") }, { jobId: "command/1", delay: 1 });
    await isEmpty(own);
    expect(own.taken).toEqual([]);
  });
});

describe("a gateway that dies", () => {
  it("leaves each of 12 to exactly one other, and none before it died, though a clock that is ahead made them due", async () => {
    const at = await place();
    const dying = await gateway(at, { heartbeatMs: minute });
    const others: Gateway[] = [];
    for (let n = 0; n < 3; n += 1) others.push(await gateway(at, { heartbeatMs: minute }));
    for (const { recovering } of others) recovering.take();
    const all = Array.from({ length: 12 }, (_, n) => command(String(n)));
    await Promise.all(all.map((one) => dying.store(one)));
    const taken = () => others.flatMap((one) => one.taken);
    const [watching = dying] = others;
    for (let times = 0; times < 2; times += 1) {
      for (const one of all) await makeDue(watching, one);
      await until(() => watching.queue.getDelayedCount()).toBe(12);
    }
    expect(taken()).toEqual([]);
    dying.dies();
    for (const one of all) await letTimePass(watching, one);
    await isEmpty(watching);
    expect(taken().toSorted()).toEqual(all.map(({ id }) => id).toSorted());
    expect(others.flatMap(({ late }) => late)).toEqual([]);
  });

  it("is followed by one more, which runs it alone; when that one dies, too, the person is told, and nobody else's is given up", async () => {
    const at = await place();
    const first = await gateway(at);
    const all = ["deadly", "other", "another"].map((id) => command(id));
    for (const one of all) await first.store(one);
    first.dies();
    const hangs = () => new Promise<void>(() => undefined);
    const second = await gateway(at, { handle: hangs });
    second.recovering.take();
    await until(() => second.taken.length).toBe(1);
    // It took the others' jobs by now, if it took several at once.
    await until(() => second.queue.getActiveCount()).toBe(1);
    const [deadly = ""] = second.taken;
    second.dies();
    const third = await gateway(at);
    third.recovering.take();
    await until(() => third.interrupted).toEqual([deadly]);
    const others = all.map(({ id }) => id).filter((id) => id !== deadly);
    await until(() => third.taken.toSorted()).toEqual(others.toSorted());
    expect([second.taken, third.late]).toEqual([[deadly], []]);
    await isEmpty(third);
  });

  it("leaves it to another that Redis doesn't answer at first", async () => {
    const at = await place();
    const dying = await gateway(at);
    await dying.store(command("1"));
    const next = await gateway(at);
    // As after a failover: the worker's connection is back sooner than that of commands
    next.redis.disconnect();
    next.recovering.take();
    dying.dies();
    const watching = await gateway(at);
    const attempts = async () => (await watching.queue.getJob("command/1"))?.attemptsMade;
    await until(attempts).toBeGreaterThan(1);
    await next.redis.connect();
    await until(() => next.taken).toEqual(["command:1"]);
    await isEmpty(next);
  });

  it("leaves what nobody took in time as too late", async () => {
    const at = await place();
    const dying = await gateway(at);
    await dying.store(command("old"));
    dying.dies();
    const next = await gateway(at, { now: () => Date.now() + 11 * minute });
    await letTimePass(next, command("old"));
    next.recovering.take();
    await until(() => next.late).toEqual(["command:old"]);
    expect(next.taken).toEqual([]);
  });

  it("leaves what it doesn't finish to the next at once when it stops in order", async () => {
    const at = await place();
    const stopping = await gateway(at, { heartbeatMs: 60_000 });
    const next = await gateway(at);
    next.recovering.take();
    await stopping.store(command("1"));
    await stopping.close();
    await until(() => next.taken).toEqual(["command:1"]);
  });
});

describe("what a gateway has in hand", () => {
  it.each([
    ["a minute behind", 60_000],
    ["three seconds ahead", -3_000],
  ])("is put off by Redis's clock where the gateway's own is %s", async (_how, byMs) => {
    const heartbeatMs = 1_000;
    const now = () => Date.now() + byMs;
    const own = await gateway(await place(), { heartbeatMs, now });
    const beganAt = now();
    await own.store(command("1"));
    const dueAt = async () => {
      const [, score = "0"] = await own.redis.zrange(
        own.queue.toKey("delayed"),
        0,
        "0",
        "WITHSCORES",
      );
      return Math.floor(Number(score) / 0x1000);
    };
    const dead = 5 * heartbeatMs;
    const stored = await dueAt();
    expect(stored).toBeGreaterThanOrEqual(beganAt + dead);
    expect(stored).toBeLessThanOrEqual(now() + dead);
    // Its heartbeat
    await until(dueAt).toBeGreaterThan(stored);
    expect(await dueAt()).toBeLessThanOrEqual(now() + dead);
    await own.finish(command("1"));
  });

  it("is not taken over by itself, however late its heartbeat is", async () => {
    const own = await gateway(await place(), { heartbeatMs: minute });
    own.recovering.take();
    await own.store(command("1"));
    // As after a loop that stood still for longer than a gateway may be silent
    await letTimePass(own, command("1"));
    await until(() => own.queue.getDelayedCount()).toBe(1);
    expect(own.taken).toEqual([]);
    await own.finish(command("1"));
    await isEmpty(own);
    expect(own.taken).toEqual([]);
  });

  it("is stored again when its job was removed by hand, or lost in a failover", async () => {
    const at = await place();
    const own = await gateway(at);
    await own.store(command("lost"));
    await own.queue.obliterate({ force: true });
    await until(() => own.queue.getDelayedCount()).toBe(1);
    own.dies();
    const next = await gateway(at);
    next.recovering.take();
    await until(() => next.taken).toEqual(["command:lost"]);
  });
});

describe("a Redis that doesn't answer", () => {
  it("leaves the interaction unknown, in these words; and if Redis stored it, it is handled long before its gateway counts as dead", async () => {
    await using server = await startRedis();
    const at = { url: server.url, namespace: "late" };
    const own = await gateway(at, { heartbeatMs: minute });
    const next = await gateway(at, { heartbeatMs: minute });
    next.recovering.take();
    process.kill(server.pid, "SIGSTOP");
    stretchDeadlines(1);
    onTestFinished(() => stretchDeadlines(30));
    const failure: unknown = await own.store(command("late")).catch((error: unknown) => error);
    stretchDeadlines(30);
    expect(failure).toBeInstanceOf(NotStored);
    expect(failure).toMatchObject({
      mayRun: true,
      message: "Gatehouse couldn't store this and doesn't know whether Redis did.",
      hint: "If a card appears, it is running; `/gatehouse jobs` shows it. Otherwise try again.",
    });
    process.kill(server.pid, "SIGCONT");
    await until(() => own.queue.getDelayedCount()).toBe(1);
    // Its last heartbeat, as all others, leaves to any gateway what Redis stored
    await own.close();
    await until(() => next.taken).toEqual(["command:late"]);
  });

  it("has done nothing when it is gone, which is said", async () => {
    await using server = await privateRedis();
    const own = await gateway({ url: server.url, namespace: "gone" });
    await server.kill();
    await until(() => own.redis.status).not.toBe("ready");
    const failure: unknown = await own.store(command("1")).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      mayRun: false,
      message: "Redis is down: nothing was done.",
      hint: "Try again in a minute.",
    });
    await expect(own.finish(command("1"))).resolves.toBeUndefined();
  });

  it("takes no interaction that is too long", async () => {
    const own = await gateway(await place());
    await expect(own.store(command("long", "x".repeat(200_000)))).rejects.toThrow(
      "That message is too long",
    );
  });
});
