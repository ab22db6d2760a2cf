import { looking } from "../../stage/looking.ts";
import { judged, onStage, type Row } from "../row.ts";
import { wishFor } from "../../people/wishes.ts";

const vms = 10;

export const serviceLateRows: Row[] = [
  {
    id: "A7b",
    fault: "resizes that apply after the quiet period, when they were told as not applied",
    must: "each is sent once, told as late once, and done from then on",
    unknown: "none",
    alone: "reads that must see a state of half a second",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, transitionMs: [400, 600] }, async (stage) => {
        // A second after the send reads say that nothing happened; it happens soon after
        const late = { lateMs: 2500, hang: "before", times: vms } as const;
        await stage.service.weather({ match: "PATCH /v1/vms/:id", ...late });
        for (let n = 1; n <= vms; n++) {
          const target = `vm-0000-0${String(n).padStart(2, "0")}`;
          const wish = { command: "vm resize", target, flags: "--cpu 8 --memory 32", form: {} };
          await wishFor(stage, wish, { who: "olivia", channel: "ops" });
          stage.faults += 1;
        }
        await stage.quiet(60_000);
        await looking(
          async () =>
            (await stage.journal()).every(({ state }) => state === "done") ? true : undefined,
          30_000,
          async () => `not done: ${(await stage.journal()).map(({ state }) => state).join(" ")}`,
        );
        await stage.service.settled();
        const journal = await stage.quiet();
        const told = (await stage.slack.messages()).filter(({ text }) =>
          /took effect late/.test(text),
        );
        return judged(await stage.check(), [
          [
            `each is done (${journal.map(({ state }) => state).join(" ")})`,
            journal.length === vms && journal.every(({ state }) => state === "done"),
          ],
          ["none was sent again", journal.every(({ attempt }) => attempt === 1)],
          [`each is told as late once (${told.length})`, told.length === vms],
        ]);
      }),
  },
];
