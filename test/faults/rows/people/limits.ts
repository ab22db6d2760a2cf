import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { answersTo, hears } from "../../people/hearing.ts";
import { looking } from "../../stage/looking.ts";
import { judged, onStage, type Row } from "../row.ts";
import { press } from "../../people/approvals.ts";
import type { Stage } from "../../stage/stage.ts";
import { wishFor } from "../../people/wishes.ts";
import { askToDelete, deletePolicy, deleteWish } from "../service/deletes.ts";

const most = 20;
const mostDestructive = 2;
const flood = 500;

/** The suite's own limits are out of everybody's way; these are a production's. */
async function withLimits(stage: Stage): Promise<void> {
  const file = path.join(stage.folder, "gatehouse.yml");
  const limits = `limits: { requestsPerMinute: ${most}, destructivePerHour: ${mostDestructive} }`;
  await writeFile(file, (await readFile(file, "utf8")).replace(/^limits: .*$/m, limits));
}

export const limitRows: Row[] = [
  {
    id: "X6",
    fault: "500 requests in a minute from one person",
    must: "20 are taken, the others are told the limit; another person is served at once; a third delete is refused",
    unknown: "none",
    alone: "how soon another person is served",
    run: ({ seed }) =>
      onStage({ seed, policy: deletePolicy, gateways: 0, workers: 0, vms: 200 }, async (stage) => {
        await withLimits(stage);
        await Promise.all([stage.addBot("gateway"), stage.addBot("worker")]);
        await stage.connected(1);
        await stage.slack.edit("setGroupMembers", "oncall", ["olivia", "vera"]);
        const vms = (await stage.service.vms()).map(({ id }) => id);

        // Vera asks for one thing in the middle of it
        const began = performance.now();
        let vera = 0;
        const one = async (n: number) => {
          if (n === flood / 2) {
            const from = performance.now();
            const asked = await stage.request("vm restart", "vm-0009-018", { who: "vera" });
            await stage.until(({ target, attempt }) => target === asked.target && attempt > 0);
            vera = performance.now() - from;
          }
          // 49 VMs that run, so that most asks are new ones and some are the same again
          await stage.request("vm restart", vms[n % 49] ?? "");
        };
        for (let n = 0; n < flood; n += 10)
          await Promise.all(Array.from({ length: 10 }, (_, k) => one(n + k)));
        const tookMs = performance.now() - began;
        stage.faults += flood - most;
        const journal = await stage.quiet(60_000);
        const hers = journal.filter(({ requester }) => requester === "U0OLIVIA");
        const answers = await looking(
          async () => {
            const told = await answersTo(stage, "olivia");
            const limited = told.filter((text) => text.includes("the limit for one person"));
            return limited.length >= flood - most ? limited : undefined;
          },
          10_000,
          async () => "olivia is told too little",
        );

        // Of what destroys there is less for everybody together; ada has asked for nothing yet
        await stage.slack.edit("setGroupMembers", "oncall", ["olivia", "vera", "ada"]);
        for (let n = 0; n < mostDestructive; n++) {
          const draft = await askToDelete(stage, `prj-000${n}`, "ada");
          await press(stage, "amir", draft);
          await stage.until(({ target, attempt }) => target === `prj-000${n}` && attempt > 0);
        }
        await wishFor(stage, deleteWish("prj-0002"), { who: "ada", channel: "ops" });
        await hears(stage, "ada", /Limit reached: /);
        const third = (await stage.quiet()).some(({ target }) => target === "prj-0002");
        return judged(
          await stage.check(),
          [
            [`${most} of hers were taken, not ${hers.length}`, hers.length === most],
            [
              `the others heard a clear sentence (${answers.length})`,
              answers.every((text) => /Nothing was done[^]*Try again in/.test(text)),
            ],
            [`vera's went at once (${Math.round(vera)} ms)`, vera > 0 && vera < 3000],
            ["a third delete was refused", !third],
          ],
          {
            notes: [
              `${flood} asks in ${(tookMs / 1000).toFixed(1)} s: ${hers.length} taken, ${answers.length} told of the limit; another person's was sent ${Math.round(vera)} ms after it was typed`,
            ],
          },
        );
      }),
  },
];
