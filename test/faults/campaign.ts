import { setTimeout as sleep } from "node:timers/promises";
import type { Verdict } from "./checker.ts";
import { startCrew } from "./crew.ts";
import { randomFrom, shuffle } from "./random.ts";
import { type Stage, startStage } from "./stage.ts";
import { campaignPace } from "./timing.ts";
import { badWeather } from "./weather.ts";

export interface Campaign {
  verdict: Verdict;
  seconds: number;
  kills: number;
  freezes: number;
  /** Processes that ended by themselves: there should be none. */
  crashes: string[];
  /** Why changes were frozen at the end: nothing here is a reason to. */
  frozen: string | undefined;
  /** Why requests did not end as done, counted. */
  whys: Record<string, number>;
  /** Calls that change something, and how many of them the weather struck. */
  calls: { changes: number; struck: number };
}

const mostRunning = 60;
const people = ["olivia", "oscar", "oona", "otto", "odette", "orson"];
const channels = ["ops", "ops-1", "ops-2", "ops-3", "ops-4", "ops-5", "ops-6", "ops-7"];

/** Commands that need no dialog, and the state their VM must have. */
const askable: Record<string, string> = {
  "vm start": "STOPPED",
  "vm stop": "RUNNING",
  "vm restart": "RUNNING",
};

/**
 * Many requests, mixed, while workers are killed and frozen all the time and a quarter of all calls go wrong. Each request
 * has a VM of its own, but for one in twelve, which meets another request on its VM.
 */
export async function runCampaign(options: {
  operations: number;
  seed: number;
  /** Between two faults (ms). */
  everyMs?: readonly [number, number];
  freezes?: number;
  say?: (line: string) => void;
  /** Leaves the logs behind. */
  keep?: boolean | undefined;
}): Promise<Campaign> {
  const { operations, seed, say = () => undefined } = options;
  const random = randomFrom(seed);
  const began = performance.now();
  await using stage = await startStage({
    seed,
    vms: operations,
    pace: campaignPace,
    workers: 0,
    gateways: 0,
    direct: true,
    keep: options.keep,
    transitionMs: [250, 500],
  });
  await fillSlack(stage);
  const crew = await startCrew(stage, {
    workers: 3,
    gateways: 2,
    random,
    everyMs: options.everyMs ?? [150, 500],
    freezes: options.freezes ?? 0.25,
  });
  const commands = Object.keys(askable).filter((name) => stage.bots[0]?.commands.includes(name));
  const plans = await plan(stage, operations, commands, random);
  for (const weather of badWeather()) await stage.service.weather(weather);
  say(`${operations} requests of ${commands.join(", ")}, seed ${seed}`);
  crew.begin();

  let next = 0;
  let told = performance.now();
  const openKey = `{${stage.namespace}}:requests:open`;
  // What waits for a person would fill the room for ever
  let running = 0;
  const counting = setInterval(() => {
    void countRunning(stage).then((count) => {
      running = count;
    });
  }, 120);
  const askers = people.map(async (who) => {
    for (;;) {
      const one = plans[next++];
      if (!one) return;
      while (running > mostRunning) await sleep(50);
      const channel = channels[Math.floor(random() * channels.length)] ?? "ops";
      // When Slack says that it failed, the person types it again
      for (let tries = 0; tries < 50; tries++) {
        if ((await stage.ask(one.command, one.vm, { who, channel })).acked) break;
        await sleep(200);
      }
      if (performance.now() - told > 10_000) {
        told = performance.now();
        const open = await stage.redis.zcard(openKey);
        say(
          `  ${Math.round((told - began) / 1000)} s: ${stage.asked.length} asked, ${open} open, ${stage.faults} faults`,
        );
      }
    }
  });
  await Promise.all(askers);
  clearInterval(counting);
  await sleep(2000);
  await crew.end();
  say(
    `  ${Math.round((performance.now() - began) / 1000)} s: all asked, ${await stage.redis.zcard(openKey)} open, no more faults`,
  );
  await stage.quiet(120_000).catch((error: unknown) => say(String(error)));
  const frozen = await stage.redis.get(`{${stage.namespace}}:freeze`);
  const whys: Record<string, number> = {};
  for (const { state, progress } of await stage.journal()) {
    const why = `${state}: ${(progress.why ?? "").replaceAll(/r-\w+|vm-[\d-]+/g, "…")}`;
    if (state !== "done") whys[why] = (whys[why] ?? 0) + 1;
  }
  if (options.keep) say(`logs in ${stage.folder}`);
  const writes = await stage.service.writes();
  const verdict = await stage.check();
  return {
    verdict,
    frozen: frozen ?? undefined,
    whys,
    seconds: (performance.now() - began) / 1000,
    kills: crew.counts.kills,
    freezes: crew.counts.freezes,
    crashes: crew.crashes,
    calls: {
      changes: writes.length,
      struck: writes.filter((call) => (call as { weather?: unknown[] }).weather?.length).length,
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

async function fillSlack(stage: Stage): Promise<void> {
  const { slack } = stage;
  for (const name of people.slice(1))
    await slack.edit("addPerson", { id: `U0${name.toUpperCase()}`, name, realName: name });
  await slack.edit("setGroupMembers", "oncall", people);
  const members = [...people.map((name) => `U0${name.toUpperCase()}`), "U0GATEHOUSE"];
  for (const [n, name] of channels.entries())
    if (n > 0) await slack.edit("addChannel", { id: `C1OPS${n}`, name, members });
  for (const name of people.slice(1)) await slack.edit("join", name, "ops");
}

async function plan(
  stage: Stage,
  operations: number,
  commands: readonly string[],
  random: () => number,
): Promise<{ command: string; vm: string }[]> {
  const vms = (await stage.service.vms()).slice(0, operations);
  const plans: { command: string; vm: string }[] = [];
  for (const [n, vm] of vms.entries()) {
    const earlier = plans[Math.floor(random() * plans.length)];
    if (n % 12 === 11 && earlier) {
      plans.push(earlier);
      continue;
    }
    const command = commands[n % commands.length] ?? "";
    const status = askable[command] ?? "RUNNING";
    if (vm.status !== status) await stage.service.edit("setStatus", { vm: vm.id, status });
    plans.push({ command, vm: vm.id });
  }
  return shuffle(plans, random);
}
