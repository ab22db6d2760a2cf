import { setTimeout as sleep } from "node:timers/promises";
import { Queue } from "bullmq";
import { answersTo, hears, looksAt, timesShown } from "../../people/hearing.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";
import { until } from "../until.ts";
import { revive } from "./revive.ts";

export const redisTroubleRows: Row[] = [
  {
    id: "R6",
    fault: "Redis out of memory",
    must: "people are told that nothing was done, and it is true",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", slowMs: 300 });
        await askEach(stage, take);
        await stage.redis.config("SET", "maxmemory", "1mb");
        stage.faults += 1;
        const refused = await stage.request("vm restart", await take("vm restart"));
        await sleep(300);
        const answers = await answersTo(stage, "olivia");
        await stage.redis.config("SET", "maxmemory", "0");
        await stage.quiet();
        const made = (await stage.journal()).some(({ target }) => target === refused.target);
        return judged(await stage.check(), [
          [
            `"nothing was done" is said (${answers.join(" / ")})`,
            answers.some((text) => /Redis is full: nothing was done/.test(text)),
          ],
          ["and true", !made],
        ]);
      }),
  },
  {
    id: "R8",
    fault: "Redis down for 1, 4, and 15 s, idle and busy",
    must: "no process ends; work goes on each time",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 60 }, async (stage) => {
        const take = fresh(stage);
        for (const seconds of [1, 4, 15]) {
          await askEach(stage, take);
          await stage.redisServer.kill();
          stage.faults += 1;
          await sleep(seconds * 1000);
          await revive(stage);
          await sleep(2500);
          await askEach(stage, take);
          await stage.quiet(45_000);
        }
        return judged(await stage.check(), [
          ["no process ended", stage.bots.every((bot) => !bot.isGone())],
        ]);
      }),
  },
  {
    id: "R8d",
    fault: "Redis accepts a write, but its answer and the connection are lost",
    must: "people are told that nobody knows, and each is done once",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, gateways: 0, ackTimeoutMs: 2500 }, async (stage) => {
        const take = fresh(stage);
        const far = { REDIS_URL: `redis://127.0.0.1:${stage.lines.redis.port}` };
        await stage.addBot("gateway", { slot: "far", env: far });
        await stage.connected(1);
        const unclear: string[] = [];
        for (let n = 0; n < 4; n++) {
          await askEach(stage, take, ["vm restart"]);
          await stage.quiet();
          const vm = await take("vm stop");
          stage.lines.redis.halfOpen(true);
          stage.faults += 1;
          await stage.slack.act("olivia", "types", "ops", `/vm stop ${vm}`);
          stage.lines.redis.halfOpen(false);
          stage.lines.redis.cut();
          unclear.push(vm);
          await sleep(1500);
        }
        const madeOf = async () => (await stage.journal()).map(({ target }) => target);
        await until(async () => {
          const made = new Set(await madeOf());
          return unclear.every((vm) => made.has(vm));
        });
        await stage.quiet();
        const answers = await answersTo(stage, "olivia");
        const said = answers.filter((text) => /doesn't know whether Redis did/.test(text)).length;
        const made = (await madeOf()).filter((target) => unclear.includes(target));
        return judged(await stage.check(), [
          [`that nobody knows is said each time (${said} of 4)`, said >= 4],
          [`each is requested once (${made.join(", ")})`, made.length === unclear.length],
        ]);
      }),
  },
  {
    id: "R9",
    fault:
      "every queue, and all steps and polls that are pending, are wiped by hand while requests are open",
    must: "every request is done",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, transitionMs: [600, 900] }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 3; n++) {
          await askEach(stage, take);
          await sleep(100);
          const prefix = `{${stage.namespace}}`;
          for (const name of ["interactions", "requests", "polls", "messages"]) {
            const queue = new Queue(name, { connection: stage.redis, prefix });
            await queue.obliterate({ force: true });
          }
          const pending = await stage.redis.zrange(`${prefix}:pending`, 0, "-1");
          for (const member of pending.filter((one) => /^(step|poll) /.test(one)))
            await stage.redis.zrem(`${prefix}:pending`, member);
          stage.faults += 5;
        }
        const journal = await stage.quiet();
        return judged(await stage.check(), [
          [
            `all done (${journal.map(({ state }) => state).join(" ")})`,
            journal.every(({ state }) => state === "done" || state === "unknown"),
          ],
        ]);
      }),
  },
  {
    id: "R9b",
    fault: "the job of a delivery that was handled is back, as from an old backup",
    must: "it is answered once",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, gateways: 1 }, async (stage) => {
        const take = fresh(stage);
        const connection = stage.redis;
        const queue = new Queue("interactions", { connection, prefix: `{${stage.namespace}}` });
        const vm = await take("vm show");
        await stage.gateways()[0]?.arm({ point: "ack", do: "block", forMs: 1500 });
        await looksAt(stage, vm);
        await until(async () => (await queue.getDelayedCount()) > 0);
        const [job] = await queue.getDelayed();
        await hears(stage, "olivia", new RegExp(vm));
        await until(async () => (await queue.getDelayedCount()) === 0);
        if (job?.id) await queue.add(job.name, job.data, { jobId: job.id });
        stage.faults += 1;
        await until(async () => (await queue.getJobCountByTypes("waiting", "active")) === 0);
        const shown = await timesShown(stage, vm);
        return judged(await stage.check(), [[`a VM is shown ${shown} times`, shown === 1]]);
      }),
  },
  {
    id: "R10",
    fault: "the same job is added twice, also after its removal",
    must: "nothing is done again",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        await askEach(stage, take);
        const queue = new Queue("requests", {
          connection: stage.redis,
          prefix: `{${stage.namespace}}`,
        });
        const ring = async () => {
          for (const { id } of await stage.journal()) {
            await queue.add(
              "step",
              { kind: "step", id },
              { deduplication: { id: `step ${id}` }, removeOnComplete: true },
            );
            await queue.add("step", { kind: "step", id }, { removeOnComplete: true });
            stage.faults += 2;
          }
        };
        await ring();
        await stage.quiet();
        await ring();
        await sleep(500);
        return judged(await stage.check(), []);
      }),
  },
  {
    id: "R11",
    fault: "a worker's event loop is blocked between claim and send, longer than its lock",
    must: "nothing is sent twice",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 2, vms: 20, timing: { quiesce: 9000, settleDeadline: 20_000 } },
        async (stage) => {
          const take = fresh(stage);
          for (const point of ["claim", "ledger", "send", "answer"]) {
            const [first] = stage.workers();
            await first?.arm({ point, do: "block", forMs: 7000 });
            stage.faults += 1;
            await askEach(stage, take);
          }
          await sleep(8000);
          await stage.quiet(45_000);
          return judged(await stage.check(), []);
        },
      ),
  },
  {
    id: "R12",
    fault: "Redis becomes a replica: READONLY",
    must: "nothing is sent, and people are told",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const vm = await take("vm restart");
        await stage.redis.replicaof("127.0.0.1", "1");
        stage.faults += 1;
        await stage.request("vm restart", vm);
        await sleep(1500);
        const answers = await answersTo(stage, "olivia");
        const writes = await stage.service.writes();
        await stage.redis.replicaof("NO", "ONE");
        await sleep(2500);
        await askEach(stage, take);
        await stage.quiet();
        return judged(await stage.check(), [
          ["nothing was sent meanwhile", writes.length === 0],
          [
            `and that was said (${answers.join(" / ")})`,
            answers.some((text) => /nothing was done/i.test(text)),
          ],
        ]);
      }),
  },
  {
    id: "R13",
    fault: "scripts forgotten after a restart",
    must: "they are reloaded; every request ends",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 3; n++) {
          await stage.redis.script("FLUSH");
          stage.faults += 1;
          await askEach(stage, take);
        }
        await stage.quiet();
        return judged(await stage.check(), []);
      }),
  },
];
