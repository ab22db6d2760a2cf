import { cp, mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "../../../../sandbox/ensure-redis.ts";
import { looking } from "../../stage/looking.ts";
import { hears } from "../../people/hearing.ts";
import { revive } from "./revive.ts";
import {
  askEach,
  type Expectation,
  expected,
  fresh,
  judged,
  kinds,
  onStage,
  type Row,
  type Story,
} from "../row.ts";
import { type Stage, startStage } from "../../stage/stage.ts";

const freezeOf = (stage: Stage) => stage.redis.get(`{${stage.namespace}}:freeze`);

/** Of how long a busy machine may need for anything here (ms). */
const patienceMs = 60_000;

const until = (isSo: () => Promise<boolean>, otherwise: string) =>
  looking(
    async () => ((await isSo()) ? true : undefined),
    patienceMs,
    async () => otherwise,
  );

/** Resolves with the freeze once it says that Redis lost so many requests: the weightiest reason of all that are found. */
async function frozenForLost(stage: Stage, requests: number): Promise<string> {
  const isSaid = async () =>
    (await freezeOf(stage))?.includes(`"reason":"Redis lost ${requests} sent requests: `) ?? false;
  await until(isSaid, "no freeze says so");
  return (await freezeOf(stage)) ?? "";
}

const recordsOf = async (stage: Stage, what: string): Promise<string[]> => {
  const trail = await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+");
  return trail
    .map(([, fields]) => fields[fields.indexOf("record") + 1] ?? "")
    .filter((record) => record.includes(`"what":"${what}"`));
};

/** Of how many requests the audit trail has sends that the journal forgot; a request may have several attempts. */
async function sendsNamed(stage: Stage): Promise<number> {
  const sends = (await recordsOf(stage, "ledger-ahead")).flatMap(
    (record) => (JSON.parse(record) as { sends: { request: string }[] }).sends,
  );
  return new Set(sends.map(({ request }) => request)).size;
}

/** The worker finds sends that the copy lacks, the gateway sealed records: `order` says who starts and finds first. */
const restored = (seed: number, order: readonly ("worker" | "gateway")[]): Promise<Story> =>
  onStage(
    { seed, workers: 0, vms: 60, redis: { args: ["--appendfsync", "always"] } },
    async (stage) => {
      const take = fresh(stage);
      const asked = [...(await askEach(stage, take)), ...(await askEach(stage, take))];
      const isWritten = async () => (await stage.journal()).length === asked.length;
      await until(isWritten, "not everything is in the journal");
      const copy = path.join(stage.folder, "copy");
      await mkdir(copy);
      await cp(path.join(stage.folder, "appendonlydir"), path.join(copy, "appendonlydir"), {
        recursive: true,
      });
      const slots = { worker: "w", gateway: "gateway-0" };
      const before = await stage.addBot("worker", { slot: slots.worker });
      await stage.quiet();
      // At its end the gateway anchors records that the copy lacks
      await Promise.all([before, ...stage.gateways()].map((bot) => bot.stop()));
      await stage.redisServer.kill();
      stage.faults += 1;
      const { port } = stage.redisServer;
      stage.redisServer = await startRedis({
        dir: copy,
        port,
        args: ["--appendfsync", "always"],
      });
      for (const role of order) {
        await stage.addBot(role, { slot: slots[role] });
        if (role === "gateway") {
          await stage.connected(1);
          const isGapFound = async () =>
            (await freezeOf(stage)) !== null && (await recordsOf(stage, "audit-gap")).length > 0;
          await until(isGapFound, "nobody misses the records that the copy lacks");
        } else await frozenForLost(stage, asked.length);
      }
      const frozen = await frozenForLost(stage, asked.length);
      await hears(stage, "olivia", new RegExp(`Redis lost ${asked.length} sent`));
      const named = await sendsNamed(stage);
      await stage.quiet(patienceMs);
      const stillFrozen = await freezeOf(stage);
      // A journal that forgot can't be judged: what really happened can
      const targets = new Set(asked.map(({ target }) => target));
      const vms = (await stage.service.vms()).filter(({ id }) => targets.has(id));
      const worst = Math.max(...vms.map((vm) => vm.starts + vm.stops + vm.restarts));
      await stage.slack.act("ada", "types", "ops", "/gatehouse thaw");
      await until(
        async () => (await freezeOf(stage)) === null,
        "an administrator's thaw ends nothing",
      );
      const [later] = await askEach(stage, take, ["vm restart"]);
      const end = await stage.until(
        ({ target, isFinal }) => isFinal && target === later?.target,
        patienceMs,
      );
      return expected([
        [`frozen for it in the end, too (${stillFrozen})`, stillFrozen === frozen],
        [`what was sent stands in the audit trail (${named})`, named === asked.length],
        [
          `at most one effect on each of ${vms.length} VMs (${worst})`,
          worst === 1 && vms.length === asked.length,
        ],
        [`after a thaw work goes on (${end.state})`, end.state === "done"],
      ]);
    },
  );

export const redisRows: Row[] = [
  {
    id: "R1",
    fault: "Redis killed and restarted throughout 500 requests",
    must: "every request ends; changes don't freeze",
    unknown: "no trace",
    run: ({ seed, times }) => {
      const operations = Math.min(500, times * 10);
      return onStage(
        { seed, workers: 3, vms: operations + 20, redis: { args: ["--appendfsync", "always"] } },
        async (stage) => {
          const take = fresh(stage);
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
          for (let n = 0; n < operations; n++) {
            const command = kinds[n % kinds.length] ?? "";
            await stage.request(command, await take(command), {
              channel: n % 2 ? "ops" : "status",
            });
            await sleep(60);
          }
          isOver = true;
          await killing;
          await stage.quiet(60_000);
          const frozen = await freezeOf(stage);
          return judged(await stage.check(), [[`not frozen: ${frozen}`, frozen === null]], {
            notes: [`${stage.faults} restarts of Redis`],
          });
        },
      );
    },
  },
  {
    id: "R2",
    fault: "Redis without an append-only file, or with eviction",
    must: "a worker refuses to start and says why",
    unknown: "not judged",
    async run({ seed }) {
      const expectations: Expectation[] = [];
      for (const args of [
        ["--appendonly", "no"],
        ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
      ]) {
        await using stage = await startStage({ seed, redis: { args }, workers: 0, gateways: 0 });
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
    fault: "Redis restored from a copy taken before the sends",
    must: "the freeze says that Redis lost sends; the trail names each; no VM sees two effects; work goes on after a thaw",
    unknown: "not judged",
    async run({ seed }) {
      const stories = [
        await restored(seed, ["worker", "gateway"]),
        await restored(seed, ["gateway", "worker"]),
      ];
      return {
        wrong: stories.flatMap(({ wrong }) => wrong),
        notes: stories.flatMap(({ notes }) => notes),
      };
    },
  },
  {
    id: "R4",
    fault: "FLUSHALL",
    must: "changes freeze; the trail names every send; nothing more is sent",
    unknown: "not judged",
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
        const frozen = await frozenForLost(stage, 3);
        const named = await sendsNamed(stage);
        const after = await stage.request("vm restart", await take("vm restart"));
        await stage.quiet();
        const [request] = (await stage.journal()).filter(({ target }) => target === after.target);
        return expected([
          [`frozen: ${frozen}`, true],
          ["what was sent stands in the audit trail", named === 3],
          [`what is asked afterwards is refused at once (${request?.state})`, !request],
        ]);
      }),
  },
  {
    id: "R5",
    fault: "Redis stopped for longer than job locks last",
    must: "work goes on afterwards",
    unknown: "no trace",
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
        return judged(await stage.check(), []);
      }),
  },
];
