import { setTimeout as sleep } from "node:timers/promises";
import { startApprovers } from "../../people/approvers.ts";
import { looking } from "../../stage/looking.ts";
import { channels, fillSlack, people } from "../../people/people.ts";
import { planWishes } from "../../people/plan.ts";
import { createRandom } from "../../../../sandbox/random.ts";
import { revive } from "./revive.ts";
import { judged, onStage, type Story, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import { wishFor } from "../../people/wishes.ts";

/** How often somebody tries while nothing works. */
const tries = 30;

/** A long outage while people ask for everything that changes something. */
export const redisOutageRows: Row[] = [
  {
    id: "R8b",
    fault: "Redis is killed under load and stays down for 60 s; people go on typing",
    must: "people are told that nothing was done; no process ends; earlier requests end",
    unknown: "no trace",
    run: ({ seed }) => outage(seed, 60_000),
  },
  {
    id: "R8c",
    fault: "the same for 600 s",
    must: "as in R8b",
    unknown: "no trace",
    onlyNamed: "it takes 11 minutes: npm run faults -- --only R8c",
    run: ({ seed }) => outage(seed, 600_000),
  },
];

function outage(seed: number, awayMs: number): Promise<Story> {
  const patientMs = awayMs + 90_000;
  return onStage(
    {
      seed,
      workers: 2,
      vms: 80,
      timing: { staleAfter: patientMs, approvalExpires: patientMs },
    },
    async (stage) => {
      await fillSlack(stage);
      const random = createRandom(seed);
      const wishes = await planWishes(stage, 60, random);
      const approvers = startApprovers(stage, random, { denied: 0, unanswered: 0 });
      let isDown = false;
      const asking = people.map(async (who, at) => {
        const channel = channels[at] ?? "ops";
        for (let n = at; n < wishes.length && !isDown; n += people.length) {
          const wish = wishes[n];
          if (wish) await wishFor(stage, wish, { who, channel });
        }
      });
      await sleep(2500);
      isDown = true;
      await stage.redisServer.kill();
      stage.faults += 1;
      const refused = await askInVain(stage, awayMs);
      await revive(stage);
      await Promise.all(asking);
      await stage.quiet(90_000);
      const drafts = async () =>
        (await stage.journal()).some(({ state }) => state === "draft") ? undefined : true;
      await looking(drafts, 30_000, async () => "some still wait for approval");
      await stage.quiet(60_000);
      await approvers.end();
      return judged(
        await stage.check(),
        [
          ["no process ended", stage.bots.every((bot) => !bot.isGone())],
          ["people were told that nothing was done", refused > 0],
        ],
        { notes: [`${refused} times “nothing was done”`] },
      );
    },
  );
}

/** Olivia asks until the time is over; resolves with how often she was told that nothing was done. */
async function askInVain(stage: Stage, awayMs: number): Promise<number> {
  const vm = (await stage.service.vms()).at(-1)?.id ?? "";
  const end = performance.now() + awayMs;
  while (performance.now() < end) {
    await stage.slack.act("olivia", "types", "ops", `/vm restart ${vm}`);
    await sleep(awayMs / tries);
  }
  const { channels: seen } = await stage.slack.seen("olivia");
  return seen
    .flatMap(({ messages }) => messages)
    .filter(({ ephemeral, text }) => ephemeral && text.includes("nothing was done")).length;
}
