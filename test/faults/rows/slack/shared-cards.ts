import { setTimeout as sleep } from "node:timers/promises";
import { fillSlack, people } from "../../people/people.ts";
import type { Bot } from "../../stage/start-bot.ts";
import type { Stage, StageOptions } from "../../stage/stage.ts";
import { type Expectation, fresh, judged, onStage, type Row } from "../row.ts";
import { takenDown } from "./taken-down.ts";

/** More is due than Slack takes, so that requests share cards. */
const crowded = (seed: number, more: StageOptions = { seed }): StageOptions => ({
  vms: 200,
  realSlackPace: true,
  transitionMs: [200, 1500],
  ...more,
  seed,
});

const steps = ["join", "shared-posting", "shared-posted"] as const;
const perBurst = 12;

export const sharedCardRows: Row[] = [
  {
    id: "S15",
    fault: "bursts of requests; a process killed at each step of a shared card",
    must: "each shared card is in Slack once; each result is told once",
    unknown: "no trace",
    run: ({ seed, times }) =>
      onStage(crowded(seed, { seed, gateways: 0, workers: 0 }), async (stage) => {
        const take = fresh(stage);
        await fillSlack(stage);
        const rounds = Math.min(4, Math.ceil(times / steps.length));
        const met = new Set<string>();
        for (let round = 0; round < rounds; round++)
          for (const [n, point] of steps.entries()) {
            // A card of the burst before would still be open in its channel
            const channel = `ops-${((3 * round + n) % 7) + 1}`;
            const bots = await Promise.all(
              (["gateway", "worker"] as const).map((role) => stage.addBot(role)),
            );
            await stage.connected(1);
            for (const bot of bots) await bot.arm({ point, do: "kill" });
            await burst(stage, take, channel);
            // Slack may still have counted the gateway of the burst before: then nobody heard
            if (await hasKilled(bots)) {
              stage.faults += 1;
              met.add(point);
            }
            const after = await Promise.all([stage.addBot("gateway"), stage.addBot("worker")]);
            await stage.quiet(90_000);
            await Promise.all([...bots, ...after].map((bot) => bot.kill()));
          }
        return judged(await stage.check(), [
          [`killed at each step (${[...met].join(", ")})`, met.size === steps.length],
          await areShared(stage),
        ]);
      }),
  },
  {
    id: "S16",
    fault: "Slack is down while a shared card fills, and answers to its posts are lost",
    must: "requests made meanwhile share cards; each result is told once",
    unknown: "none",
    run: ({ seed }) =>
      onStage(crowded(seed, { seed, workers: 2 }), async (stage) => {
        await fillSlack(stage);
        const take = fresh(stage);
        await burst(stage, take);
        await takenDown(stage, perBurst);
        stage.lines.slack.refuse(true);
        await sleep(4000);
        stage.lines.slack.refuse(false);
        stage.faults += 3;
        await stage.slack.question("addWeather", {
          method: "chat.postMessage",
          kind: "lost-after",
          times: 2,
        });
        await burst(stage, take);
        await takenDown(stage, 2 * perBurst);
        await stage.quiet(90_000);
        return judged(await stage.check(), [await areShared(stage)]);
      }),
  },
  {
    id: "S17",
    fault: "one shared card is deleted while its requests run; another's channel is archived",
    must: "every request ends, and its requester is told",
    unknown: "none",
    run: ({ seed }) =>
      onStage(crowded(seed, { seed, workers: 0 }), async (stage) => {
        await fillSlack(stage);
        const take = fresh(stage);
        await burst(stage, take);
        await burst(stage, take, "ops-1");
        const inOps = (isIn: boolean) =>
          stage.until(({ fields }) => {
            const isShared = fields["said:card"]?.startsWith("shared") && fields["card"];
            return isShared !== undefined && fields["card"]?.startsWith("C01OPS ") === isIn;
          }, 20_000);
        const [channel = "", ts = ""] = (await inOps(true)).fields["card"]?.split(" ") ?? [];
        await inOps(false);
        await stage.slack.edit("deleteMessage", channel, ts);
        stage.faults += 1;
        await stage.slack.edit("removeBot", "ops-1");
        stage.faults += 1;
        await stage.addBot("worker");
        const journal = await stage.quiet(120_000);
        const verdict = await stage.check();
        // The card that was deleted is missing, as it should be
        const missing = verdict.findings.filter((finding) => !finding.endsWith(" 0 cards"));
        return judged(
          verdict,
          [
            ["all ended", journal.every(({ isFinal }) => isFinal)],
            [
              "who could not be told in the channel was told elsewhere",
              journal.some(({ fields }) => fields["fallback"] !== undefined),
            ],
            await areShared(stage),
          ],
          { instead: { silent: missing.length } },
        );
      }),
  },
];

/** Of six people at once: each may ask for so much within a minute. */
async function burst(
  stage: Stage,
  take: (command: string) => Promise<string>,
  channel = "ops",
): Promise<void> {
  const vms: string[] = [];
  for (let n = 0; n < perBurst; n++) vms.push(await take("vm stop"));
  await Promise.all(
    vms.map((vm, n) =>
      stage.request("vm stop", vm, { channel, who: people[n % people.length] ?? "olivia" }),
    ),
  );
}

async function hasKilled(bots: readonly Bot[]): Promise<boolean> {
  const until = performance.now() + 10_000;
  while (bots.every((bot) => !bot.isGone()) && performance.now() < until) await sleep(50);
  return bots.some((bot) => bot.isGone());
}

async function areShared(stage: Stage): Promise<Expectation> {
  const journal = await stage.journal();
  const shared = journal.filter(({ fields }) => fields["said:card"]?.startsWith("shared"));
  return [`${shared.length} of ${journal.length} requests shared a card`, shared.length > 0];
}
