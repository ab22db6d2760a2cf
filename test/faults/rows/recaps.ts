import { setTimeout as sleep } from "node:timers/promises";
import { looking } from "../looking.ts";
import { oneRecapEach } from "../recaps.ts";
import { fresh, judged, kindsOf, onStage, type Row, type RowNotRun } from "../row.ts";
import type { Stage } from "../stage.ts";

/** What is told of an outage afterwards, while processes are killed over it. */
export const recapRows: (Row | RowNotRun)[] = [
  {
    id: "S10b",
    what: "Slack is away during 60 requests with workers and gateways killed: one recap per channel",
    run: ({ seed }) =>
      onStage(
        {
          seed,
          vms: 80,
          workers: 2,
          gateways: 2,
          transitionMs: [1000, 2500],
          pace: { outage: 1500 },
        },
        async (stage) => {
          const take = fresh(stage);
          const kinds = kindsOf(stage);
          for (let n = 0; n < 60; n++) {
            const command = kinds[n % kinds.length] ?? "";
            await stage.ask(command, await take(command), { channel: n % 2 ? "ops" : "status" });
          }
          // An ask that could not be looked up any more would be answered by nobody: Slack is away
          await looking(
            async () => ((await stage.journal()).length === 60 ? true : undefined),
            20_000,
            async () => "not all asks were written down",
          );
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
          return judged(
            await stage.check(),
            [
              [`${journal.length} requests`, journal.length === 60],
              await oneRecapEach(stage, "slack", ["C01OPS", "C02STATUS"]),
            ],
            { mayBeUnknown: true },
          );
        },
      ),
  },
  {
    id: "D1",
    what: "the service is away during 30 requests while workers are killed: they run afterwards, one recap per channel",
    run: ({ seed }) =>
      onStage({ seed, vms: 60, workers: 2, pace: { outage: 2000 } }, async (stage) => {
        const take = fresh(stage);
        const kinds = kindsOf(stage);
        const vms: [command: string, vm: string][] = [];
        for (let n = 0; n < 30; n++) {
          const command = kinds[n % kinds.length] ?? "";
          vms.push([command, await take(command)]);
        }
        const replacing: Promise<unknown>[] = [];
        for (const [n, [command, vm]] of vms.entries()) {
          await stage.ask(command, vm, { channel: n % 2 ? "ops" : "status" });
          if (n === 10) {
            stage.lines.compute.refuse(true);
            stage.faults += 1;
          }
        }
        for (let n = 0; n < 8; n++) {
          await sleep(800);
          replacing.push(replaceOne(stage, "worker"));
          if (n === 4) stage.lines.compute.refuse(false);
        }
        await Promise.all(replacing);
        const journal = await stage.quiet(60_000);
        return judged(
          await stage.check(),
          [
            [`${journal.length} requests`, journal.length === 30],
            await oneRecapEach(stage, "service", ["C01OPS", "C02STATUS"]),
          ],
          { mayBeUnknown: true },
        );
      }),
  },
];

/** Kills one, and begins another in its place; that one may have to wait until Slack says who it is. */
async function replaceOne(stage: Stage, role: "worker" | "gateway"): Promise<void> {
  const [oldest] = role === "worker" ? stage.workers() : stage.gateways();
  stage.faults += 1;
  await oldest?.kill();
  await stage.addBot(role);
}
