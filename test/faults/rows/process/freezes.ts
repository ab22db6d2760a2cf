import { setTimeout as sleep } from "node:timers/promises";
import { runCampaign } from "../../campaign/campaign.ts";
import { looksAt, timesShown } from "../../people/hearing.ts";
import { askEach, fresh, type How, judged, kinds, onStage, type Story, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Timing } from "../../stage/timing.ts";

export const processRows: Row[] = [
  {
    id: "P10",
    fault: "random kill -9 and freezes, 3 workers: a small campaign",
    must: "no process ends by itself",
    unknown: "no trace",
    alone: "it keeps both cores busy",
    async run({ seed }) {
      const campaign = await runCampaign({ operations: 100, seed });
      return judged(
        campaign.verdict,
        [["no process ended by itself", campaign.crashes.length === 0]],
        { notes: [`${campaign.kills} kills, ${campaign.freezes} freezes`] },
      );
    },
  },
  {
    id: "P11",
    fault: "random SIGSTOP for 2.5 s",
    must: "every request ends",
    unknown: "no trace",
    alone: "it keeps both cores busy",
    async run({ seed }) {
      const campaign = await runCampaign({ operations: 60, seed, freezes: 1 });
      return judged(campaign.verdict, [], {
        notes: [`${campaign.freezes} freezes`],
      });
    },
  },
  {
    id: "P12",
    fault: "a worker frozen for 7 s between claim and window check",
    must: "its successor only reads; nothing is sent twice",
    unknown: "no trace",
    run: (how) => freezeAt(how, "claim", { quiesce: 12_000, settleDeadline: 25_000 }),
  },
  {
    id: "P13",
    fault: "a worker frozen for 7 s between check and write",
    must: "its successor only reads; nothing is sent twice",
    unknown: "no trace",
    run: (how) => freezeAt(how, "send", { quiesce: 12_000, settleDeadline: 25_000 }),
  },
  {
    id: "P13b",
    fault: "the same for longer than the quiet period",
    must: "nothing more is sent",
    unknown: "no trace",
    run: (how) => freezeAt(how, "send", {}),
  },
  {
    id: "P21",
    fault: "a gateway frozen for 7 s between an ack and the journal",
    must: "another takes over; it is requested or answered once",
    unknown: "none",
    run: (how) => freezeGatewayAt(how, "ack"),
  },
  {
    id: "P14",
    fault: "SIGTERM with 60 requests in flight",
    must: "both drain within 10 s and exit with 0",
    unknown: "no trace",
    alone: "how long the drain takes",
    run: (how) =>
      onStage({ seed: how.seed, vms: 100, workers: 2, transitionMs: [300, 900] }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 60; n++)
          await stage.request(
            kinds[n % kinds.length] ?? "",
            await take(kinds[n % kinds.length] ?? ""),
          );
        const began = performance.now();
        const old = stage.workers();
        const [, how1, how2] = await Promise.all([
          stage.addBot("worker", { slot: "next" }),
          ...old.map(async (bot) => {
            await bot.stop();
            return bot.exited;
          }),
        ]);
        const drainedIn = performance.now() - began;
        stage.faults += old.length;
        await stage.quiet();
        return judged(
          await stage.check(),
          [
            ["both ended by themselves, with 0", how1 === 0 && how2 === 0],
            ["drained within 10 s", drainedIn < 10_000],
          ],
          { notes: [`drained in ${Math.round(drainedIn)} ms`] },
        );
      }),
  },
  {
    id: "P15",
    fault: "three workers are woken for one request at once, seven times",
    must: "one of them gets it",
    unknown: "none",
    run: (how) =>
      onStage({ seed: how.seed, vms: 160, workers: 3 }, async (stage) => {
        const take = fresh(stage);
        const ids: string[] = [];
        for (let n = 0; n < Math.min(143, how.times * 3); n++) {
          const command = kinds[n % kinds.length] ?? "";
          const asked = stage.request(command, await take(command));
          // Rung for again and again under other job ids, so that every worker takes it at once
          await asked;
          const { Queue } = await import("bullmq");
          const queue = new Queue("requests", {
            connection: stage.redis,
            prefix: `{${stage.namespace}}`,
          });
          const newest =
            (await stage.redis.zrevrange(`{${stage.namespace}}:requests:recent`, 0, 0))[0] ?? "";
          ids.push(newest);
          await queue.addBulk(
            Array.from({ length: 6 }, (_, k) => ({
              name: "step",
              data: { kind: "step", id: newest },
              opts: { jobId: `double-${newest}-${k}`, removeOnComplete: true, removeOnFail: true },
            })),
          );
          stage.faults += 6;
        }
        await stage.quiet();
        return judged(await stage.check(), [], {
          notes: [`${new Set(ids).size} requests, each rung for 7 times`],
        });
      }),
  },
  {
    id: "P16",
    fault: "unhandled rejection and process.exit in the middle",
    must: "each process ends; another takes over",
    unknown: "no trace",
    run: (how) =>
      onStage({ seed: how.seed, workers: 0, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        for (const point of ["claim", "send", "answer", "move"]) {
          for (const end of ["exit", "reject"] as const) {
            const bot = await stage.addBot("worker", { slot: "ends" });
            await bot.arm({ point, do: end });
            await askEach(stage, take);
            await Promise.race([bot.exited, sleep(5000)]);
            stage.faults += bot.isGone() ? 1 : 0;
            await bot.kill();
          }
        }
        await stage.addBot("worker", { slot: "next" });
        await stage.quiet(45_000);
        return judged(await stage.check(), [["each process ended", stage.faults === 8]], {});
      }),
  },
  {
    id: "P17",
    fault: "one step always throws",
    must: "its request ends; the others are done",
    unknown: "none",
    run: (how) =>
      onStage({ seed: how.seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const [worker] = stage.workers();
        const poison = await stage.request("vm stop", await take("vm stop"));
        for (let n = 1; n <= 30; n++) await worker?.arm({ point: "gate", do: "throw" });
        const other = await stage.request("vm restart", await take("vm restart"));
        stage.faults += 5;
        const journal = await stage.quiet();
        const ends = journal.map(({ target, state }) => `${target} ${state}`);
        return judged(
          await stage.check(),
          [
            [
              `the poisoned ones ended (${ends.join(", ")})`,
              journal.every(({ isFinal }) => isFinal),
            ],
          ],
          { notes: [`${poison.target}, ${other.target}`] },
        );
      }),
  },
];

const freezeAt = (how: How, point: string, timing: Partial<Timing>): Promise<Story> =>
  onStage({ seed: how.seed, vms: 60, workers: 0, timing }, async (stage) => {
    const take = fresh(stage);
    const { frozen, isEnough } = await freeze(stage, "worker", point, async (command) =>
      stage.request(command, await take(command)),
    );
    await stage.addBot("worker", { slot: "successor" });
    await sleep(7000);
    for (const bot of frozen) bot.thaw();
    await sleep(1500);
    await stage.quiet(60_000);
    return judged(await stage.check(), [isEnough]);
  });

const freezeGatewayAt = (how: How, point: string): Promise<Story> =>
  onStage({ seed: how.seed, vms: 60, gateways: 0, ackTimeoutMs: 800 }, async (stage) => {
    const take = fresh(stage);
    const shown: string[] = [];
    const { frozen, isEnough } = await freeze(stage, "gateway", point, async (command) => {
      const vm = await take(command);
      if (command !== "vm stop") await stage.request(command, vm);
      else if ((await looksAt(stage, vm)).acked) shown.push(vm);
    });
    const held = stage.asked.filter(({ acked }) => acked).length;
    const before = (await stage.journal()).length;
    await stage.addBot("gateway", { slot: "successor" });
    await sleep(7000);
    const meanwhile = (await stage.journal()).length;
    for (const bot of frozen) bot.thaw();
    await sleep(1500);
    await stage.quiet(60_000);
    const times = await Promise.all(shown.map((vm) => timesShown(stage, vm)));
    return judged(await stage.check(), [
      isEnough,
      [
        `${held} acknowledged, ${before} requested before, ${meanwhile} meanwhile`,
        before === 0 && meanwhile === held,
      ],
      // Frozen in the middle of an answer a gateway may end it too
      [`VMs were shown ${times.join(", ")} times`, times.every((count) => count >= 1)],
    ]);
  });

/** Asks until each of seven processes stands still at the point. */
async function freeze(
  stage: Stage,
  role: "worker" | "gateway",
  point: string,
  ask: (command: string) => Promise<unknown>,
) {
  const frozen = await Promise.all(
    Array.from({ length: 7 }, (_, n) => stage.addBot(role, { slot: `frozen-${n}` })),
  );
  for (const bot of frozen) await bot.arm({ point, do: "stop" });
  let reached = 0;
  const all = Promise.allSettled(
    frozen.map((bot) => bot.hit(point, 60_000).then(() => (reached += 1))),
  );
  // One may take two, or take one in its last moment: then more is asked for until each has stopped at the point
  for (let n = 0; n < 2 * frozen.length && reached < frozen.length; n++) {
    await ask(kinds[n % kinds.length] ?? "");
    if (n >= frozen.length - 1) await Promise.race([all, sleep(500)]);
  }
  stage.faults += reached;
  return { frozen, isEnough: [`frozen there: ${reached} of 7`, reached >= 5] as const };
}
