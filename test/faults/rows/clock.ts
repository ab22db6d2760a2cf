import { askEach, fresh, judged, kindsOf, onStage, type Row, type RowNotRun } from "../row.ts";
import { pendingApprovals, voting } from "../approving.ts";
import { clockStepRows } from "./clock-steps.ts";

export const clockRows: (Row | RowNotRun)[] = [
  {
    id: "C1",
    what: "wall clocks of two workers an hour ahead and behind",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        await Promise.all([
          stage.addBot("worker", { slot: "ahead", clockOffMs: 3_600_000 }),
          stage.addBot("worker", { slot: "behind", clockOffMs: -3_600_000 }),
        ]);
        stage.faults += 2;
        for (let n = 0; n < 4; n++) await askEach(stage, take);
        const journal = await stage.quiet();
        return judged(
          await stage.check(),
          [
            [
              `none expired (${journal.map(({ state }) => state).join(" ")})`,
              journal.every(({ state }) => state !== "expired"),
            ],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "C3",
    what: "the worker's clock is 10 min behind between approval and execution",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 0, policy: voting, pace: { staleAfter: 1500, approvalExpires: 1500 } },
        async (stage) => {
          const take = fresh(stage);
          await askEach(
            stage,
            take,
            kindsOf(stage).filter((kind) => kind !== "vm stop"),
          );
          await new Promise((resolve) => setTimeout(resolve, 2000));
          await stage.addBot("worker", { clockOffMs: -600_000 });
          stage.faults += 1;
          const journal = await stage.quiet();
          return judged(await stage.check(), [
            [
              `what is too old stays too old (${journal.map(({ state }) => state).join(" ")})`,
              journal.every(({ state }) => state === "expired"),
            ],
          ]);
        },
      ),
  },
  {
    id: "C3b",
    what: "an approval that comes too late by Redis' clock, whatever the gateway's says",
    run: ({ seed }) =>
      onStage({ seed, gateways: 0, policy: voting.replace("60s", "1500ms") }, async (stage) => {
        await stage.addBot("gateway", { clockOffMs: -600_000 });
        for (
          let tries = 0;
          tries < 100 && (await stage.slack.ask<number>("connections")) === 0;
          tries++
        )
          await new Promise((resolve) => setTimeout(resolve, 50));
        const vm = await fresh(stage)("vm stop");
        await stage.ask("vm stop", vm);
        const [pending] = await pendingApprovals(stage, 1);
        await new Promise((resolve) => setTimeout(resolve, 2000));
        stage.faults += 1;
        await stage.slack
          .act("amir", "presses", "Approve", { in: pending?.ts ?? "", channel: "ops" })
          .catch(() => undefined);
        const [request] = await stage.quiet();
        return judged(await stage.check(), [
          [`expired, not ${request?.state}`, request?.state === "expired"],
        ]);
      }),
  },
  ...clockStepRows,
];
