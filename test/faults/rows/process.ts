import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "../bot.ts";
import { runCampaign } from "../campaign.ts";
import {
  askEach,
  fresh,
  type How,
  judged,
  kindsOf,
  onStage,
  type Outcome,
  type Row,
  type RowNotRun,
} from "../row.ts";
import type { Stage } from "../stage.ts";
import type { Pace } from "../timing.ts";

/** Kills so many at once; each is a process of its own. */
const batch = 6;

/** Points at which the process that performs, posts, or listens is killed. */
const points: readonly (readonly [
  id: string,
  point: string,
  role: "worker" | "gateway",
  what: string,
  more?: Partial<Rule>,
])[] = [
  ["P1", "intake", "gateway", "written down, before the ack"],
  ["P1b", "ack", "gateway", "after the ack, before the journal"],
  ["P2", "journal", "gateway", "in the journal, before the queue"],
  ["P3", "enqueue", "gateway", "in the queue"],
  ["P4", "claim", "worker", "claimed, before the ledger"],
  ["P5", "ledger", "worker", "in the ledger, before the send"],
  ["P6", "send", "worker", "right before the socket"],
  ["P6b", "send", "worker", "while the call is on the wire", { afterMs: 40 }],
  ["P7", "answer", "worker", "answered, before the move"],
  ["P8", "move", "worker", "moved, before anything else"],
  ["P8b", "watch", "worker", "after a poll"],
  ["P9", "post", "worker", "before a post"],
  ["P9b", "posting", "worker", "marked as posting, before the call"],
  ["P9c", "posted", "worker", "posted, before that is noted"],
];

async function killAt(
  stage: Stage,
  how: How,
  point: string,
  role: "worker" | "gateway",
  more: Partial<Rule>,
): Promise<Outcome> {
  const take = fresh(stage);
  let n = 0;
  // Long enough on the wire that a kill finds it there
  if (more.afterMs) await stage.service.weather({ match: "writes", slowMs: 120 });
  const steady = await stage.addBot(role === "worker" ? "gateway" : "worker", { slot: "steady" });
  if (point.startsWith("post")) await steady.stop();
  const most = 4 * Math.ceil(how.times / batch);
  for (let round = 0; stage.faults < how.times && round < most; round++) {
    const size = Math.min(batch, how.times - stage.faults);
    const doomed = await Promise.all(
      Array.from({ length: size }, (_, at) => stage.addBot(role, { slot: `doomed-${at}` })),
    );
    for (const bot of doomed) await bot.arm({ point, do: "kill", ...more });
    const asking = point.startsWith("post")
      ? await stage.addBot("gateway", { slot: "asking" })
      : undefined;
    // With posts the gateway delivers too: it must not take the work from those that are to die
    if (asking) await asking.arm({ point, do: "kill", ...more });
    const kinds = kindsOf(stage);
    const type = async () => {
      const command = kinds[n++ % kinds.length] ?? "vm stop";
      const vm = await take(command);
      for (let tries = 0; tries < 20; tries++) {
        if ((await stage.ask(command, vm)).acked) return;
        await sleep(30);
      }
    };
    for (let tries = 0; tries < 5 && doomed.some((bot) => !bot.isGone()); tries++) {
      const alive = doomed.filter((bot) => !bot.isGone());
      if (role === "gateway") for (const _ of alive) await type();
      else await Promise.all(alive.map(() => type().catch(() => undefined)));
      await Promise.race([Promise.all(doomed.map((bot) => bot.exited)), sleep(1200)]);
    }
    stage.faults += [...doomed, asking].filter((bot) => bot?.isGone()).length;
    const [after, listening] = await Promise.all([
      stage.addBot(role, { slot: "after" }),
      asking ? stage.addBot("gateway", { slot: "listening" }) : undefined,
    ]);
    await Promise.all(doomed.map((bot) => bot.kill()));
    await asking?.kill();
    await stage.quiet(45_000);
    await Promise.all([after.kill(), listening?.kill()]);
  }
  const verdict = await stage.check();
  const unknowns = (await stage.journal()).filter(({ state }) => state === "unknown");
  return judged(
    verdict,
    [
      ["every kill was made", stage.faults >= how.times],
      ["only restarts may be unknown", unknowns.every(({ command }) => command === "vm restart")],
    ],
    { mayBeUnknown: role === "worker" && !point.startsWith("post") },
  );
}

const kills: Row[] = points.map(([id, point, role, what, more = {}]) => ({
  id,
  what: `kill -9 ${what}`,
  quick: ["P4", "P6", "P7"].includes(id),
  run: (how) =>
    onStage(
      { seed: how.seed, workers: 0, gateways: 0, vms: how.times * 8 + 60, ackTimeoutMs: 800 },
      (stage) => killAt(stage, how, point, role, more),
    ),
}));

export const processRows: (Row | RowNotRun)[] = [
  ...kills,
  {
    id: "P10",
    what: "random kill -9 and freezes, 3 workers: the campaign in small",
    async run({ seed }) {
      const campaign = await runCampaign({ operations: 100, seed });
      return judged(
        campaign.verdict,
        [["no process ended by itself", campaign.crashes.length === 0]],
        { mayBeUnknown: true, notes: [`${campaign.kills} kills, ${campaign.freezes} freezes`] },
      );
    },
  },
  {
    id: "P11",
    what: "SIGSTOP 2.5 s at random, every fault a freeze",
    async run({ seed }) {
      const campaign = await runCampaign({ operations: 60, seed, freezes: 1 });
      return judged(campaign.verdict, [], {
        mayBeUnknown: true,
        notes: [`${campaign.freezes} freezes`],
      });
    },
  },
  {
    id: "P12",
    what: "frozen for 7 s between claim and window check",
    run: (how) => freezeAt(how, "claim", { quiesce: 9000, settleDeadline: 20_000 }),
  },
  {
    id: "P13",
    what: "frozen for 7 s between check and write: a successor only looks",
    run: (how) => freezeAt(how, "send", { quiesce: 9000, settleDeadline: 20_000 }),
  },
  {
    id: "P13b",
    what: "the same, frozen for longer than the time of quiet: never twice, but what was said may be wrong",
    run: (how) => freezeAt(how, "send", {}),
  },
  {
    id: "P14",
    what: "SIGTERM with 60 requests in flight",
    run: (how) =>
      onStage({ seed: how.seed, vms: 100, workers: 2, transitionMs: [300, 900] }, async (stage) => {
        const take = fresh(stage);
        const kinds = kindsOf(stage);
        for (let n = 0; n < 60; n++)
          await stage.ask(kinds[n % kinds.length] ?? "", await take(kinds[n % kinds.length] ?? ""));
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
          { mayBeUnknown: true, notes: [`drained in ${Math.round(drainedIn)} ms`] },
        );
      }),
  },
  {
    id: "P15",
    what: "two workers claim the same request at once",
    quick: true,
    run: (how) =>
      onStage({ seed: how.seed, vms: 120, workers: 3 }, async (stage) => {
        const take = fresh(stage);
        const kinds = kindsOf(stage);
        const ids: string[] = [];
        for (let n = 0; n < Math.min(100, how.times * 2); n++) {
          const command = kinds[n % kinds.length] ?? "";
          const asked = stage.ask(command, await take(command));
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
              name: "advance",
              data: { request: newest },
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
    what: "unhandled rejection and process.exit in the middle",
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
        return judged(await stage.check(), [["each process ended", stage.faults === 8]], {
          mayBeUnknown: true,
        });
      }),
  },
  {
    id: "P17",
    what: "a step that always throws",
    quick: true,
    run: (how) =>
      onStage({ seed: how.seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const [worker] = stage.workers();
        const poison = await stage.ask("vm stop", await take("vm stop"));
        for (let n = 1; n <= 30; n++) await worker?.arm({ point: "gate", do: "throw" });
        const other = await stage.ask("vm restart", await take("vm restart"));
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
  {
    id: "P18",
    what: "old and new version side by side",
    notRun: "there is only one version yet; records of an unknown version are tested in R-V",
  },
  {
    id: "P19",
    what: "a digest job kills the worker every time",
    notRun: "digests are not built yet",
  },
];

async function freezeAt(how: How, point: string, pace: Partial<Pace>): Promise<Outcome> {
  return onStage({ seed: how.seed, vms: 60, workers: 0, pace }, async (stage) => {
    const take = fresh(stage);
    const kinds = kindsOf(stage);
    const frozen = await Promise.all(
      Array.from({ length: 7 }, (_, n) => stage.addBot("worker", { slot: `frozen-${n}` })),
    );
    for (const bot of frozen) await bot.arm({ point, do: "stop" });
    for (let n = 0; n < frozen.length; n++) {
      const command = kinds[n % kinds.length] ?? "";
      await stage.ask(command, await take(command));
    }
    await Promise.all(frozen.map((bot) => bot.hit(point, 6000).catch(() => undefined)));
    stage.faults += frozen.length;
    await stage.addBot("worker", { slot: "successor" });
    await sleep(7000);
    for (const bot of frozen) bot.thaw();
    await sleep(1500);
    await stage.quiet(60_000);
    const verdict = await stage.check();
    const isSure = pace.quiesce !== undefined;
    const counted = isSure ? verdict : { ...verdict, falseFailure: 0 };
    const notes = isSure
      ? []
      : [
          `${verdict.falseFailure} of ${verdict.operations} were reported as not applied and happened afterwards`,
        ];
    return { ...judged(counted, [], { mayBeUnknown: true, notes }), verdict };
  });
}
