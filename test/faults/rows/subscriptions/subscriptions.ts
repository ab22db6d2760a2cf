import { looking } from "../../stage/looking.ts";
import { textsIn } from "../rollouts/rollout-stage.ts";
import { fresh, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import { createKeys } from "../../../../src/redis/redis.ts";
import { pendingOf } from "../../../support/pending.ts";
import { vendor, sharedWithVendor } from "../vendor-channel.ts";

/** A gateway and a worker, of which whoever posts first dies there; the other is killed then. */
async function dieAt(stage: Stage, point: "posting" | "posted", slot: string): Promise<void> {
  const bots = await Promise.all(
    (["gateway", "worker"] as const).map((role) => stage.addBot(role, { slot: `${slot}-${role}` })),
  );
  for (const bot of bots) await bot.arm({ point, what: "feed", do: "kill" });
  if (point === "posting") {
    const vm = await fresh(stage)("vm restart");
    await stage.connected(1);
    await stage.request("vm restart", vm, { who: "olivia", channel: "ops" });
  }
  await looking(
    async () => (bots.some((bot) => bot.isGone()) ? true : undefined),
    60_000,
    async () => `nobody dies at ${point}: ${JSON.stringify(await stage.journal())}`,
  );
  stage.faults += 1;
  for (const bot of bots) await bot.kill();
}

export const subscriptionRows: Row[] = [
  {
    id: "G5",
    fault:
      "the process that notifies a subscribed channel is killed before the post; its successor right after it",
    must: "the channel is notified once",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, gateways: 0, policy: sharedWithVendor }, async (stage) => {
        const subscription = {
          channelId: vendor,
          glob: "*",
          events: ["trouble", "drift", "changes"],
          by: "U0OLIVIA",
          at: 1,
        };
        const key = `{${stage.namespace}}`;
        await stage.redis.hset(`${key}:subscriptions`, `${vendor} *`, JSON.stringify(subscription));
        await dieAt(stage, "posting", "g5-0");
        await dieAt(stage, "posted", "g5-1");
        await stage.addBot("gateway", { slot: "g5-2" });
        await stage.addBot("worker", { slot: "g5-3" });
        await looking(
          async () =>
            (await pendingOf(stage.redis, createKeys(stage.namespace), "feed")) === 0
              ? true
              : undefined,
          60_000,
          async () => "the subscribed channel is still to be told",
        );
        await stage.quiet(45_000);
        const told = (await stage.slack.messages()).filter(
          ({ channelId, blocks }) =>
            channelId === vendor && /\brestarted\b/i.test(textsIn(blocks).join(" ")),
        );
        return judged(await stage.check(), [
          [`two processes died (${stage.faults})`, stage.faults === 2],
          [`told once (${told.length})`, told.length === 1],
        ]);
      }),
  },
];
