import { startApprovers } from "../../people/approvers.ts";
import { everythingKept } from "../../stage/kept.ts";
import { fillSlack } from "../../people/people.ts";
import { planWishes } from "../../people/plan.ts";
import { createRandom } from "../../../../sandbox/random.ts";
import { judged, onStage, type Row } from "../row.ts";
import { wishFor } from "../../people/wishes.ts";

/** A stranger's page that quotes what it was sent, as careless proxies do. */
const page = (secret: string) => `<html>401 for Authorization: Bearer ${secret}</html>`;

/** A day's work with faults, and everything that it left behind searched (X11 does the same for a console's address). */
export const secretRows: Row[] = [
  {
    id: "U5",
    fault: "the service's errors quote the key; a worker dies",
    must: "no secret is in journal, jobs, trail, logs, ledgers, or messages",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 40, receive: "http", direct: true }, async (stage) => {
        await fillSlack(stage);
        const random = createRandom(seed);
        const wishes = await planWishes(stage, 18, random);
        const approvers = startApprovers(stage, random, { denied: 0, unanswered: 0 });
        const key = stage.secrets.at(-1) ?? "";
        await stage.service.weather({
          match: "POST /v1/vms/*",
          status: 502,
          errorShape: "html",
          message: page(key),
          times: 3,
        });
        stage.faults += 4;
        for (const [n, wish] of wishes.entries()) {
          if (n === 9) await stage.workers()[0]?.kill();
          await wishFor(stage, wish, { who: "olivia", channel: "ops" });
        }
        await stage.quiet(60_000);
        await approvers.end();
        const kept = await everythingKept(stage);
        const [known] = wishes;
        return judged(await stage.check(), [
          [`${stage.secrets.length} secrets are looked for`, stage.secrets.length >= 3],
          ["what is no secret is found", known !== undefined && kept.includes(known.target)],
          [
            `none is anywhere (${stage.secrets.filter((one) => kept.includes(one)).length} are)`,
            stage.secrets.every((one) => !kept.includes(one)),
          ],
        ]);
      }),
  },
];
