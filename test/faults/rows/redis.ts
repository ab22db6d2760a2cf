import { cp, mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue } from "bullmq";
import { startRedis } from "../../../src/sandbox/ensure-redis.ts";
import {
  askEach,
  type Expectation,
  expected,
  fresh,
  judged,
  kindsOf,
  onStage,
  type Row,
  type RowNotRun,
} from "../row.ts";
import { type Stage, startStage } from "../stage.ts";

/** The same data on the same port; what was there is kept. */
async function revive(stage: Stage, args: readonly string[] = []): Promise<void> {
  const { dir, port } = stage.redisServer;
  stage.redisServer = await startRedis({ dir, port, args });
}

const freezeOf = (stage: Stage) => stage.redis.get(`{${stage.namespace}}:freeze`);

/** How many sends that the journal forgot were written into the audit trail. */
async function sendsNamed(stage: Stage): Promise<number> {
  const trail = await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+");
  const records = trail.map(([, fields]) => fields[fields.indexOf("record") + 1] ?? "");
  const ahead = records.find((record) => record.includes("ledger-ahead"));
  return ahead ? (JSON.parse(ahead) as { sends: unknown[] }).sends.length : 0;
}

async function answersOf(stage: Stage, who: string): Promise<string[]> {
  const seen = await stage.slack.seen(who);
  return seen.channels
    .flatMap(({ messages }) => messages)
    .filter(({ ephemeral }) => ephemeral)
    .map(({ text }) => text);
}

export const redisRows: (Row | RowNotRun)[] = [
  {
    id: "R1",
    what: "Redis killed and started again, over and over during 120 requests",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 3, vms: 140, redisArgs: ["--appendfsync", "always"] },
        async (stage) => {
          const take = fresh(stage);
          const kinds = kindsOf(stage);
          let isOver = false;
          const killing = (async () => {
            while (!isOver) {
              await sleep(700);
              await stage.redisServer.kill();
              await sleep(150);
              await revive(stage, ["--appendfsync", "always"]);
              stage.faults += 1;
            }
          })();
          for (let n = 0; n < 120; n++) {
            const command = kinds[n % kinds.length] ?? "";
            await stage.ask(command, await take(command), { channel: n % 2 ? "ops" : "status" });
            await sleep(60);
          }
          isOver = true;
          await killing;
          await stage.quiet(60_000);
          const frozen = await freezeOf(stage);
          return judged(await stage.check(), [[`not frozen: ${frozen}`, frozen === null]], {
            mayBeUnknown: true,
            notes: [`${stage.faults} restarts of Redis`],
          });
        },
      ),
  },
  {
    id: "R2",
    what: "Redis without an append-only file, or with an evicting policy",
    quick: true,
    async run({ seed }) {
      const expectations: Expectation[] = [];
      for (const args of [
        ["--appendonly", "no"],
        ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
      ]) {
        await using stage = await startStage({ seed, redisArgs: args, workers: 0, gateways: 0 });
        const bot = await stage.addBot("worker");
        expectations.push([
          `a worker refuses and says why (${bot.refused ?? "started"})`,
          /appendonly|maxmemory-policy/.test(bot.refused ?? ""),
        ]);
      }
      return expected(expectations);
    },
  },
  {
    id: "R3",
    what: "Redis restored from a copy taken before the sends",
    quick: true,
    run: ({ seed }) =>
      onStage(
        { seed, workers: 0, vms: 60, redisArgs: ["--appendfsync", "always"] },
        async (stage) => {
          const take = fresh(stage);
          const asked = [...(await askEach(stage, take)), ...(await askEach(stage, take))];
          await stage.until(() => true);
          const copy = path.join(stage.folder, "copy");
          await mkdir(copy);
          await cp(path.join(stage.folder, "appendonlydir"), path.join(copy, "appendonlydir"), {
            recursive: true,
          });
          const before = await stage.addBot("worker", { slot: "w" });
          await stage.quiet();
          await before.kill();
          await stage.redisServer.kill();
          stage.faults += 1;
          const { port } = stage.redisServer;
          stage.redisServer = await startRedis({
            dir: copy,
            port,
            args: ["--appendfsync", "always"],
          });
          await stage.addBot("worker", { slot: "w" });
          await sleep(3000);
          const frozen = await freezeOf(stage);
          await stage.quiet();
          const named = await sendsNamed(stage);
          // A journal that forgot can't be judged: what really happened can
          const targets = new Set(asked.map(({ target }) => target));
          const vms = (await stage.service.vms()).filter(({ id }) => targets.has(id));
          const worst = Math.max(...vms.map((vm) => vm.starts + vm.stops + vm.restarts));
          return expected(
            [
              [`frozen (${frozen})`, frozen !== null],
              [`what was sent stands in the audit trail (${named})`, named === asked.length],
              [
                `at most one effect on each of ${vms.length} VMs (${worst})`,
                worst === 1 && vms.length === asked.length,
              ],
            ],
            [`freeze: ${frozen}`],
          );
        },
      ),
  },
  {
    id: "R4",
    what: "FLUSHALL",
    run: ({ seed }) =>
      onStage({ seed, workers: 0 }, async (stage) => {
        const take = fresh(stage);
        await askEach(stage, take);
        const first = await stage.addBot("worker", { slot: "w" });
        await stage.quiet();
        await first.kill();
        await stage.redis.flushall();
        stage.faults += 1;
        await stage.addBot("worker", { slot: "w" });
        await sleep(500);
        const frozen = (await freezeOf(stage)) ?? "";
        const named = await sendsNamed(stage);
        const after = await stage.ask("vm restart", await take("vm restart"));
        await stage.quiet();
        const [request] = (await stage.journal()).filter(({ target }) => target === after.target);
        return expected([
          [`frozen: ${frozen}`, frozen !== ""],
          ["what was sent stands in the audit trail", named === 3],
          [`nothing is sent (${request?.state})`, request?.state === "cancelled"],
        ]);
      }),
  },
  {
    id: "R5",
    what: "Redis stopped for longer than the jobs' locks",
    run: ({ seed }) =>
      onStage({ seed, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        await askEach(stage, take);
        process.kill(stage.redisServer.pid, "SIGSTOP");
        stage.faults += 1;
        await sleep(8000);
        process.kill(stage.redisServer.pid, "SIGCONT");
        await askEach(stage, take);
        await stage.quiet(45_000);
        return judged(await stage.check(), [], { mayBeUnknown: true });
      }),
  },
  {
    id: "R6",
    what: "Redis out of memory",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", slowMs: 300 });
        await askEach(stage, take);
        await stage.redis.config("SET", "maxmemory", "1mb");
        stage.faults += 1;
        const refused = await stage.ask("vm restart", await take("vm restart"));
        await sleep(300);
        const answers = await answersOf(stage, "olivia");
        await stage.redis.config("SET", "maxmemory", "0");
        await stage.quiet();
        const made = (await stage.journal()).some(({ target }) => target === refused.target);
        return judged(
          await stage.check(),
          [
            [
              `"nothing was done" is said (${answers.join(" / ")})`,
              answers.some((text) => /nothing was done/i.test(text)),
            ],
            ["and true", !made],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "R7",
    what: "disk full for the append-only file",
    notRun: "needs a small file system to fill, which takes mounting",
  },
  {
    id: "R8",
    what: "Redis away for 1, 4 and 15 s, idle and busy",
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
        return judged(
          await stage.check(),
          [["no process ended", stage.bots.every((bot) => !bot.isGone())]],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "R9",
    what: "the queue is wiped by hand while requests are open",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1, transitionMs: [600, 900] }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 3; n++) {
          await askEach(stage, take);
          await sleep(100);
          for (const name of ["requests", "watches"]) {
            const queue = new Queue(name, {
              connection: stage.redis,
              prefix: `{${stage.namespace}}`,
            });
            await queue.obliterate({ force: true });
            stage.faults += 1;
          }
        }
        const journal = await stage.quiet();
        return judged(
          await stage.check(),
          [
            [
              `all done (${journal.map(({ state }) => state).join(" ")})`,
              journal.every(({ state }) => state === "done" || state === "unknown"),
            ],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "R10",
    what: "the same job added again, also after it was removed",
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
              "advance",
              { request: id },
              { jobId: `request-${id}`, removeOnComplete: true },
            );
            await queue.add("advance", { request: id }, { removeOnComplete: true });
            stage.faults += 2;
          }
        };
        await ring();
        await stage.quiet();
        await ring();
        await sleep(500);
        return judged(await stage.check(), [], { mayBeUnknown: true });
      }),
  },
  {
    id: "R11",
    what: "a worker's event loop is blocked for longer than its lock, between claim and send",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 2, vms: 20, pace: { quiesce: 9000, settleDeadline: 20_000 } },
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
          return judged(await stage.check(), [], { mayBeUnknown: true });
        },
      ),
  },
  {
    id: "R12",
    what: "Redis becomes a replica: READONLY",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const vm = await take("vm restart");
        await stage.redis.replicaof("127.0.0.1", "1");
        stage.faults += 1;
        await stage.ask("vm restart", vm);
        await sleep(1500);
        const answers = await answersOf(stage, "olivia");
        const writes = await stage.service.writes();
        await stage.redis.replicaof("NO", "ONE");
        await sleep(2500);
        await askEach(stage, take);
        await stage.quiet();
        return judged(
          await stage.check(),
          [
            ["nothing was sent meanwhile", writes.length === 0],
            [
              `and that was said (${answers.join(" / ")})`,
              answers.some((text) => /nothing was done/i.test(text)),
            ],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "R13",
    what: "scripts forgotten after a restart",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 3; n++) {
          await stage.redis.script("FLUSH");
          stage.faults += 1;
          await askEach(stage, take);
        }
        await stage.quiet();
        return judged(await stage.check(), [], { mayBeUnknown: true });
      }),
  },
];
