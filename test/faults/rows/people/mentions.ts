import { hears } from "../../people/hearing.ts";
import { judged, onStage, type Row } from "../row.ts";

/** What each would do, if a message alone could do it. */
const mentions = [
  ["ada", "gatehouse freeze storage is failing", /freeze\? Press the button/],
  ["olivia", "gatehouse digest on 09:00 UTC", /digest\? Press the button/],
  ["olivia", "vm restart vm-0000-000", /Restart vm-0000-000\? Press the button/],
  ["olivia", "vm stop vm-0000-001", /Stop vm-0000-001\? Press the button/],
] as const;

export const mentionRows: Row[] = [
  {
    id: "X16",
    fault: "messages that mention Gatehouse with a change, by people who can run it",
    must: "each is answered with a button; nothing is done until it is pressed",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, vms: 4 }, async (stage) => {
        for (const [who, words, answer] of mentions) {
          await stage.slack.act(who, "types", "ops", `@gatehouse ${words}`);
          await hears(stage, who, answer);
          stage.faults += 1;
        }
        // By a command, which only a person can type
        await stage.request("vm restart", "vm-0000-002");
        const journal = await stage.quiet();
        const kept = (name: string) => stage.redis.exists(`{${stage.namespace}}:${name}`);
        const [frozen, schedules] = [await kept("freeze"), await kept("digest-schedules")];
        return judged(await stage.check(), [
          ["nothing is frozen", frozen === 0],
          ["no digest is set up", schedules === 0],
          ["only what was typed as a command is a request", journal.length === 1],
          ["nothing else was sent", (await stage.service.writes()).length === 1],
        ]);
      }),
  },
];
