import { setTimeout as sleep } from "node:timers/promises";
import { type Job, Queue } from "bullmq";
import { startSentinels } from "../../../support/redis-nodes.ts";
import { looking } from "../../stage/looking.ts";
import { hears, looksAt, timesShown } from "../../people/hearing.ts";
import type { Stage, StageOptions } from "../../stage/stage.ts";
import { type Expectation, expected, fresh, judged, onStage, type Row } from "../row.ts";
import { revive } from "./revive.ts";

/** A worker waits itself for the next read of a project, so no job of `polls` is delayed here. */
const names = ["interactions", "requests", "messages", "schedules"] as const;
const fsync = ["--appendfsync", "always"];
const patienceMs = 60_000;

/** Operations take long enough that the fault finds jobs of each queue put off. */
const slowly = {
  workers: 1,
  transitionMs: [4000, 5000],
  timing: { settleDeadline: 30_000 },
} as const satisfies StageOptions;

/** The queues that delay jobs, for looking at them. */
function queuesOf({ redis, namespace }: Stage): readonly Queue[] {
  return names.map((name) => {
    const queue = new Queue(name, { connection: redis, prefix: `{${namespace}}` });
    queue.on("error", () => undefined); // Redis is killed on purpose
    return queue;
  });
}

const schedulersIn = async (queues: readonly Queue[]): Promise<string[]> =>
  ((await queues.at(-1)?.getJobSchedulers()) ?? []).map(({ key }) => key).toSorted();

/** The jobs that are delayed in it, once there are some. */
const delayedIn = (queue: Queue): Promise<Job[]> =>
  looking(
    async () => {
      const jobs = (await queue.getDelayed()).filter((job: Job | undefined) => job !== undefined);
      return jobs.length > 0 ? jobs : undefined;
    },
    15_000,
    async () => `no job is delayed in ${queue.name}`,
  );

/**
 * Resolves once a job is delayed in each of these queues at the same time: a request waits for another one of its VM;
 * Slack posts nothing; and the gateway has an interaction in hand, which asks to see `shown`.
 */
async function allDelayed(stage: Stage) {
  const queues = queuesOf(stage);
  const take = fresh(stage);
  const vms = [await take("vm restart"), await take("vm restart")];
  const shown = await take("vm show");
  await stage.slack.edit("setGroupMembers", "oncall", ["olivia", "amir"]);
  await stage.slack.question("addWeather", { method: "chat.postMessage", kind: "server-error" });
  for (const vm of vms) await stage.request("vm restart", vm);
  for (const vm of vms) {
    await stage.until(({ target, state }) => target === vm && state === "accepted");
    await stage.request("vm restart", vm, { who: "amir" });
  }
  await stage.gateways()[0]?.arm({ point: "ack", do: "wait" });
  await looksAt(stage, shown);
  await looking(
    async () => {
      const all = await Promise.all(queues.map((queue) => queue.getDelayedCount()));
      return all.every((count) => count > 0) ? true : undefined;
    },
    15_000,
    async () => `not every queue has a delayed job: ${JSON.stringify(await stage.journal())}`,
  );
  return { shown, vms, queues, schedulers: await schedulersIn(queues) };
}

/** Lets Slack post and the gateway handle what it has in hand. */
async function goOn(stage: Stage): Promise<void> {
  await stage.slack.question("clearWeather");
  for (const gateway of stage.gateways()) gateway.go();
}

type Delayed = Awaited<ReturnType<typeof allDelayed>>;

/** The schedulers that there were run again: the fleet has been read since then. */
async function schedulesGoOn(
  stage: Stage,
  { queues, schedulers: before }: Delayed,
): Promise<Expectation> {
  const readAt = async () =>
    Number(await stage.redis.hget(`{${stage.namespace}}:inventory:head`, "refreshedAt"));
  const since = Date.now();
  const isSo = async () => {
    const after = await schedulersIn(queues);
    return after.join() === before.join() && (await readAt()) > since ? after : undefined;
  };
  const after = await looking(isSo, patienceMs, async () => "").catch(() => schedulersIn(queues));
  const isRead = (await readAt()) > since;
  return [
    `all schedules go on (${after.join(", ")})`,
    isRead && after.join() === before.join() && before.length >= 4,
  ];
}

/** What must hold after a Redis that forgot nothing is there again. */
async function allDone(stage: Stage, delayed: Delayed) {
  const { shown } = delayed;
  await hears(stage, "olivia", new RegExp(shown));
  const journal = await stage.quiet(patienceMs);
  const states = journal.map(({ state }) => state);
  const times = await timesShown(stage, shown);
  return judged(await stage.check(), [
    [`four requests end (${states.join(" ")})`, states.length === 4],
    ["none expired or canceled", states.every((state) => state === "done" || state === "unknown")],
    [`the VM is shown once (${times})`, times === 1],
    await schedulesGoOn(stage, delayed),
    ["no process ended", stage.bots.every((bot) => !bot.isGone())],
  ]);
}

export const lostJobRows: Row[] = [
  {
    id: "R9c",
    fault: "a delayed job is removed by hand from each queue that has one",
    must: "each is put back; every request is done, each message told, each schedule goes on",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, ...slowly }, async (stage) => {
        const delayed = await allDelayed(stage);
        const { shown, queues } = delayed;
        for (const queue of queues) {
          for (const job of await delayedIn(queue)) {
            // BullMQ refuses to remove the next job of a scheduler: as with redis-cli
            if (queue.name === "schedules") {
              await stage.redis.zrem(queue.toKey("delayed"), job.id ?? "");
              await stage.redis.del(queue.toKey(job.id ?? ""));
            } else await job.remove().catch(() => undefined); // it runs by now
          }
          stage.faults += 1;
        }
        // Only its job is left of what this gateway has in hand
        for (const queue of queues.slice(0, 1)) await delayedIn(queue);
        const [gateway] = stage.gateways();
        await gateway?.kill();
        await stage.addBot("gateway");
        await goOn(stage);
        await hears(stage, "olivia", new RegExp(shown));
        const journal = await stage.quiet(patienceMs);
        const states = journal.map(({ state }) => state);
        const times = await timesShown(stage, shown);
        return judged(await stage.check(), [
          [
            `all done (${states.join(" ")})`,
            states.length === 4 && states.every((state) => state === "done"),
          ],
          [`the VM is shown once (${times})`, times === 1],
          await schedulesGoOn(stage, delayed),
        ]);
      }),
  },
  {
    id: "R26",
    fault:
      "Redis is killed and started again while jobs are delayed in every queue that delays some",
    must: "every request ends, each message is told, each schedule goes on",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, ...slowly, redis: { args: fsync } }, async (stage) => {
        const delayed = await allDelayed(stage);
        await stage.redisServer.kill();
        stage.faults += 1;
        await sleep(1500);
        await revive(stage, fsync);
        await goOn(stage);
        return allDone(stage, delayed);
      }),
  },
  {
    id: "R27",
    fault: "Redis is emptied while jobs are delayed in every queue that delays some",
    must: "changes freeze, no VM is restarted twice; what was acknowledged is answered, each schedule goes on",
    unknown: "not judged",
    run: ({ seed }) =>
      onStage({ seed, ...slowly }, async (stage) => {
        const delayed = await allDelayed(stage);
        const { shown, vms } = delayed;
        await stage.redis.flushall();
        stage.faults += 1;
        await goOn(stage);
        await hears(stage, "olivia", new RegExp(shown));
        const freeze = await looking(
          async () => (await stage.redis.get(`{${stage.namespace}}:freeze`)) ?? undefined,
          patienceMs,
          async () => "changes don't freeze",
        );
        const schedules = await schedulesGoOn(stage, delayed);
        const later = await stage.request("vm restart", await fresh(stage)("vm restart"));
        await stage.quiet(patienceMs);
        const request = (await stage.journal()).find(({ target }) => target === later.target);
        const restarted = (await stage.service.vms()).filter(({ id }) => vms.includes(id));
        const most = Math.max(...restarted.map(({ restarts }) => restarts));
        const times = await timesShown(stage, shown);
        return expected([
          [`frozen, as Redis lost sends: ${freeze}`, freeze.includes("Redis lost")],
          [`each VM was restarted once (${most})`, most === 1],
          [`what is asked afterwards is refused at once (${request?.state})`, !request],
          [`the VM is shown once (${times})`, times === 1],
          schedules,
          ["no process ended", stage.bots.every((bot) => !bot.isGone())],
        ]);
      }),
  },
  {
    id: "R28",
    fault: "sentinels fail over while jobs are delayed in every queue that delays some",
    must: "as in R26",
    unknown: "no trace",
    async run({ seed }) {
      await using nodes = await startSentinels();
      return await onStage({ seed, ...slowly, nodes }, async (stage) => {
        const delayed = await allDelayed(stage);
        await stage.redis.wait(1, 2000);
        const old = await nodes.primary();
        await old.kill();
        stage.faults += 1;
        await nodes.another(old);
        await old.start();
        await goOn(stage);
        return allDone(stage, delayed);
      });
    },
  },
];
