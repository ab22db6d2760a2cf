import { pendingApprovals, press } from "../../people/approvals.ts";
import { hears } from "../../people/hearing.ts";
import { wishFor } from "../../people/wishes.ts";
import { judged, onStage, type Row } from "../row.ts";

/** New names and a VM inside stand under rules; the names of before under none, but for one. */
const rules = `approvals:
  - { operations: ["project.update"], targets: ["prod-*", "team-0002", "vm-0003-*"], required: 1, expires: 10m }`;

/** What olivia wants besides a protected name: three of these wait, the last runs at once. */
const wishes = [
  { project: "prj-0001", flags: "--name prod-1" },
  { project: "prj-0002", flags: "--name free-2" },
  { project: "prj-0003", flags: "--name free-3" },
  { project: "prj-0004", flags: "--name free-4" },
] as const;

export const nameRows: Row[] = [
  {
    id: "X15",
    fault: "projects renamed out of rules, into rules, and with VMs under rules",
    must: "the strictest of old name, new name, and VMs applies: one is refused, three wait, one runs",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, vms: 100, policy: rules }, async (stage) => {
        await stage.slack.act(
          "olivia",
          "types",
          "ops",
          "/project update prj-0000 --name vault-0 --cpu 4",
        );
        await hears(stage, "olivia", /team-0000 \(because of its new name vault-0\) is protected/);
        stage.faults += 1;
        for (const { project, flags } of wishes) {
          const wish = { command: "project update", target: project, flags, form: {} };
          await wishFor(stage, wish, { who: "olivia", channel: "ops" });
          stage.faults += 1;
        }
        await stage.until(({ target, isFinal }) => target === "prj-0004" && isFinal);
        const drafts = await pendingApprovals(stage, 3);
        const asked = (await stage.journal()).map(({ target }) => target);
        const calls = (await stage.service.writes()).length;
        for (const draft of drafts) await press(stage, "amir", draft);
        const journal = await stage.quiet();
        return judged(await stage.check(), [
          ["the protected name was not given", !asked.includes("prj-0000")],
          [`three waited (${drafts.map(({ target }) => target).join(" ")})`, drafts.length === 3],
          [`one was sent before anybody said yes (${calls})`, calls === 1],
          ["all others are done", journal.every(({ state }) => state === "done")],
        ]);
      }),
  },
];
