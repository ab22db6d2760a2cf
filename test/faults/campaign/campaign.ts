import { setTimeout as sleep } from "node:timers/promises";
import type { Verdict } from "../check/checker.ts";
import { startApprovers } from "../people/approvers.ts";
import { startCrew } from "./crew.ts";
import { looking } from "../stage/looking.ts";
import { channels, fillSlack, people } from "../people/people.ts";
import { planWishes } from "../people/plan.ts";
import { createRandom } from "../../../sandbox/random.ts";
import { type Stage, startStage } from "../stage/stage.ts";
import { campaignTiming } from "../stage/timing.ts";
import { badWeather } from "./weather.ts";
import { wishFor } from "../people/wishes.ts";

export interface Campaign {
  verdict: Verdict;
  seconds: number;
  kills: number;
  freezes: number;
  /** Processes that ended by themselves: there should be none. */
  crashes: string[];
  /** Why changes were frozen at the end: nothing here is a reason to. */
  frozen: string | undefined;
  /** How those who must agree answered. */
  answers: { approvals: number; denials: number; unanswered: number };
  /** What dialogs refused at once, because of the request before. */
  refused: number;
  /** Why requests did not end as done, counted. */
  whys: Record<string, number>;
  /** Calls that change something, and how many of them the weather struck. */
  calls: { changes: number; struck: number };
}

const mostRunning = 60;

/**
 * Requests of all commands that change something, mixed, with their dialogs and approvals, while workers and gateways are
 * killed and frozen all the time and a quarter of all calls go wrong.
 */
export async function runCampaign(options: {
  operations: number;
  seed: number;
  /** Three workers and two gateways without it; each has one that waits to take over. */
  posts?: { workers: number; gateways: number };
  freezes?: number;
  say?: (line: string) => void;
  /** Leaves the logs behind. */
  keep?: boolean | undefined;
}): Promise<Campaign> {
  const { operations, seed, say = () => undefined } = options;
  const random = createRandom(seed);
  const began = performance.now();
  await using stage = await startStage({
    seed,
    vms: Math.ceil(operations * 1.15),
    timing: campaignTiming,
    workers: 0,
    gateways: 0,
    direct: true,
    keep: options.keep,
    transitionMs: [250, 500],
  });
  await fillSlack(stage);
  // Some are refused by their dialog, because of the request before
  const wishes = await planWishes(stage, Math.ceil(operations * 1.15), random);
  const crew = await startCrew(stage, {
    ...(options.posts ?? { workers: 3, gateways: 2 }),
    random,
    freezes: options.freezes ?? 0.25,
  });
  for (const weather of badWeather()) await stage.service.weather(weather);
  say(`${operations} requests, seed ${seed}`);
  const approvers = startApprovers(stage, random);
  crew.begin();

  let next = 0;
  let asking = 0;
  let refused = 0;
  let told = performance.now();
  const openKey = `{${stage.namespace}}:requests:open`;
  // What waits for a person would fill the room for ever
  let running = 0;
  const counting = setInterval(() => {
    // A stage that closes because a person gave up takes its connection away
    countRunning(stage).then(
      (count) => {
        running = count;
      },
      () => undefined,
    );
  }, 120);
  const askers = people.map(async (who) => {
    for (;;) {
      if (stage.asked.length >= operations) return;
      if (stage.asked.length + asking >= operations) {
        await sleep(50);
        continue;
      }
      const wish = wishes[next++];
      if (!wish) return;
      asking += 1;
      while (running > mostRunning) await sleep(50);
      const channel = channels[Math.floor(random() * channels.length)] ?? "ops";
      if (!(await wishFor(stage, wish, { who, channel }))) refused += 1;
      asking -= 1;
      if (performance.now() - told > 10_000) {
        told = performance.now();
        const open = await stage.redis.zcard(openKey);
        say(
          `  ${Math.round((told - began) / 1000)} s: ${stage.asked.length} asked, ${open} open, ${stage.faults} faults`,
        );
      }
    }
  });
  await Promise.all(askers).finally(() => clearInterval(counting));
  await sleep(2000);
  await crew.end();
  say(
    `  ${Math.round((performance.now() - began) / 1000)} s: all asked, ${await stage.redis.zcard(openKey)} open, no more faults`,
  );
  await stage.quiet(120_000).catch((error: unknown) => say(String(error)));
  const drafts = async () =>
    (await stage.journal()).some(({ state }) => state === "draft") ? undefined : true;
  await looking(drafts, 60_000, async () => "drafts that nobody answered stay drafts").catch(
    (error: unknown) => crew.crashes.push(String(error)),
  );
  await approvers.end();
  await stage.quiet(60_000).catch((error: unknown) => say(String(error)));
  const frozen = await stage.redis.get(`{${stage.namespace}}:freeze`);
  const whys: Record<string, number> = {};
  for (const { state, stage: facts } of await stage.journal()) {
    const why = `${state}: ${(facts.why ?? "").replaceAll(/r-\w+|vm-[\d-]+/g, "…")}`;
    if (state !== "done") whys[why] = (whys[why] ?? 0) + 1;
  }
  if (options.keep) say(`logs in ${stage.folder}`);
  const writes = await stage.service.writes();
  const verdict = await stage.check();
  return {
    verdict,
    frozen: frozen ?? undefined,
    answers: approvers.counts,
    refused,
    whys,
    seconds: (performance.now() - began) / 1000,
    kills: crew.counts.kills,
    freezes: crew.counts.freezes,
    crashes: crew.crashes,
    calls: {
      changes: writes.length,
      struck: writes.filter(({ weather }) => weather.length > 0).length,
    },
  };
}

async function countRunning(stage: Stage): Promise<number> {
  const ids = await stage.redis.zrange(`{${stage.namespace}}:requests:open`, 0, "-1");
  const pipeline = stage.redis.pipeline();
  for (const id of ids) pipeline.hget(`{${stage.namespace}}:request:${id}`, "state");
  const states = (await pipeline.exec()) ?? [];
  return states.filter(([, state]) => state !== "unknown").length;
}
