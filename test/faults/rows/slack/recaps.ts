import { setTimeout as sleep } from "node:timers/promises";
import { looking } from "../../stage/looking.ts";
import { takenDown } from "./taken-down.ts";
import { type Expectation, fresh, judged, kinds, onStage, type Row } from "../row.ts";
import { createKeys } from "../../../../src/redis/redis.ts";
import { pendingOf } from "../../../support/pending.ts";
import type { Stage } from "../../stage/stage.ts";

/** What is told of an outage afterwards, while processes are killed over it. */
export const recapRows: Row[] = [
  {
    id: "S10b",
    fault: "Slack is down during 60 requests; workers and gateways are killed",
    must: "every request ends; each channel gets one recap, after its last result",
    unknown: "no trace",
    alone: "a recap that waits for results only so long",
    run: ({ seed }) =>
      onStage(
        {
          seed,
          vms: 80,
          workers: 2,
          gateways: 2,
          transitionMs: [1000, 2500],
          timing: { outage: 1500 },
        },
        async (stage) => {
          const take = fresh(stage);
          for (let n = 0; n < 60; n++) {
            const command = kinds[n % kinds.length] ?? "";
            await stage.request(command, await take(command), {
              channel: n % 2 ? "ops" : "status",
            });
          }
          await takenDown(stage, 60);
          stage.lines.slack.refuse(true);
          stage.faults += 1;
          await sleep(3000);
          const replaced = [replaceOne(stage, "worker"), replaceOne(stage, "gateway")];
          await sleep(3000);
          stage.lines.slack.refuse(false);
          // Over the drain, the end of the outage and the recaps
          for (let n = 0; n < 10; n++) {
            await sleep(700);
            replaced.push(replaceOne(stage, n % 2 ? "gateway" : "worker"));
          }
          await Promise.all(replaced);
          const journal = await stage.quiet(90_000);
          return judged(await stage.check(), [
            [`${journal.length} requests`, journal.length === 60],
            await oneRecapEach(stage, "slack", ["C01OPS", "C02STATUS"]),
          ]);
        },
      ),
  },
  {
    id: "D1",
    fault: "the service is down during 30 requests; workers are killed",
    must: "the requests run afterwards; each channel gets one recap, after its last result",
    unknown: "no trace",
    alone: "a recap that waits for results only so long",
    run: ({ seed }) =>
      onStage(
        // A recap waits six times as long as the shortest outage: longer than the last outcome takes to become unknown
        { seed, vms: 60, workers: 2, timing: { outage: 3000, settleDeadline: 15_000 } },
        async (stage) => {
          const take = fresh(stage);
          const vms: [command: string, vm: string][] = [];
          for (let n = 0; n < 30; n++) {
            const command = kinds[n % kinds.length] ?? "";
            vms.push([command, await take(command)]);
          }
          const replacing: Promise<unknown>[] = [];
          for (const [n, [command, vm]] of vms.entries()) {
            await stage.request(command, vm, { channel: n % 2 ? "ops" : "status" });
            if (n === 10) {
              stage.lines.compute.refuse(true);
              stage.faults += 1;
            }
          }
          for (let n = 0; n < 8; n++) {
            await sleep(800);
            replacing.push(replaceOne(stage, "worker"));
            if (n !== 4) continue;
            // On a slow machine hardly a worker lives long enough to see that the service is away
            await outageBegan(stage, "service");
            stage.lines.compute.refuse(false);
          }
          await Promise.all(replacing);
          const journal = await stage.quiet(60_000);
          return judged(await stage.check(), [
            [`${journal.length} requests`, journal.length === 30],
            await oneRecapEach(stage, "service", ["C01OPS", "C02STATUS"]),
          ]);
        },
      ),
  },
];

/** Kills one, and begins another in its place; that one may have to wait until Slack says who it is. */
async function replaceOne(stage: Stage, role: "worker" | "gateway"): Promise<void> {
  const [oldest] = role === "worker" ? stage.workers() : stage.gateways();
  stage.faults += 1;
  await oldest?.kill();
  await stage.addBot(role);
}

/** Resolves once an outage of that part is on record. */
async function outageBegan(stage: Stage, part: "slack" | "redis" | "service"): Promise<void> {
  const seen = `{${stage.namespace}}:outages:seen:${part}`;
  await looking(
    async () => (await stage.redis.hget(seen, "id")) || undefined,
    60_000,
    async () => `No outage: ${JSON.stringify(await stage.redis.hgetall(seen))}`,
  );
}

const recap = /^recap:(\w+)-\d+:(\w+)$/;

/** Whether each of these channels got exactly one recap of that part's outage, after its last result. */
async function oneRecapEach(
  stage: Stage,
  part: "slack" | "redis" | "service",
  channels: readonly string[],
): Promise<Expectation> {
  const key = createKeys(stage.namespace);
  await looking(
    async () => {
      const open = await stage.redis.hget(key("outages", "seen", part), "id");
      const left = await pendingOf(stage.redis, key, "recap", "notice");
      return !open && left === 0 ? true : undefined;
    },
    60_000,
    async () =>
      `Outages: ${JSON.stringify(await stage.redis.hgetall(key("outages", "seen", part)))}`,
  );
  const messages = await stage.slack.messages();
  const idOf = (message: (typeof messages)[number]) =>
    String(
      (message.metadata as { event_payload?: { request?: string } } | undefined)?.event_payload
        ?.request,
    );
  const said = messages.flatMap((message) => {
    const [, of, channel] = recap.exec(idOf(message)) ?? [];
    return of === part ? [{ channel: channel ?? "", ts: message.ts, text: message.text }] : [];
  });
  const isAfter = said.every(({ channel, ts }) =>
    messages.every(
      (message) =>
        message.channelId !== channel ||
        !/^[rs]-/.test(idOf(message)) ||
        Number(message.ts) < Number(ts),
    ),
  );
  const counts = channels.map((id) => said.filter(({ channel }) => channel === id).length);
  const words = said.map(({ text }) => text.slice(0, 120)).join(" / ");
  return [
    `one recap in each of ${channels.join(", ")} (${counts.join(", ")}), after all results: ${isAfter} — ${words}`,
    counts.every((count) => count === 1) && isAfter,
  ];
}
