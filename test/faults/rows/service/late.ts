import { looking } from "../../../support/looking.ts";
import { judged, onStage, type Row } from "../row.ts";
import { wishFor } from "../../people/wishes.ts";

const vms = 10;

export const serviceLateRows: Row[] = [
  {
    id: "A7b",
    fault: "resizes that apply after the quiet period, when they were already resent",
    must: "each is done after at most two sends; every second effect is reported",
    unknown: "none",
    alone: "reads that must see a state of half a second",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, transitionMs: [400, 600] }, async (stage) => {
        // A second after the send reads say that nothing happened; it happens when the second call is long done
        const late = { lateMs: 5000, hang: "before", times: vms } as const;
        await stage.service.weather({ match: "PATCH /v1/vms/:id", ...late });
        for (let n = 1; n <= vms; n++) {
          const target = `vm-0000-0${String(n).padStart(2, "0")}`;
          const wish = { command: "vm resize", target, flags: "--cpu 8 --memory 32", form: {} };
          await wishFor(stage, wish, { who: "olivia", channel: "ops" });
          stage.faults += 1;
        }
        const journal = await stage.quiet(60_000);
        const resizes = async () =>
          ((await stage.service.vms()) as { resizes?: number }[]).map((vm) => vm.resizes ?? 0);
        await looking(
          async () => ((await resizes()).filter((n) => n > 0).length === vms ? true : undefined),
          10_000,
          async () => "not everything came late",
        );
        await stage.service.settled();
        await stage.quiet();
        const verdict = await stage.check();
        const told = (await stage.slack.messages()).filter(({ text }) =>
          /is \w+, and no request explains it/.test(text),
        );
        const again = journal.filter(({ attempt }) => attempt > 1).length;
        // A second effect can't be helped here, but it must be told: that is counted below
        return judged(
          verdict,
          [
            [
              `each is done (${journal.map(({ state }) => state).join(" ")})`,
              journal.length === vms && journal.every(({ state }) => state === "done"),
            ],
            ["none was sent a third time", journal.every(({ attempt }) => attempt <= 2)],
            [`every second effect is told (${told.length})`, told.length === verdict.twice],
            [
              `only what was sent again applied twice (${verdict.twice} of ${again})`,
              verdict.twice <= again,
            ],
          ],
          {
            instead: { twice: 0 },
            notes: [
              `${again} of ${vms} were sent again, ${verdict.twice} applied twice (the same specs, a second reboot), ${told.length} were told`,
            ],
          },
        );
      }),
  },
];
