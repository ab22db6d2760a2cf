import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { looking } from "../../stage/looking.ts";
import type { Journalled } from "../../check/count-effects.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";

const requests = 100;

/** What a process sent, by its own ledger. */
async function sentBy(stage: Stage, slot: string): Promise<string[]> {
  const folder = path.join(stage.folder, slot, "ledger");
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(path.join(folder, name), "utf8")),
  );
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => line !== "");
  return lines.map((line) => (JSON.parse(line) as { request: string }).request);
}

const versionOf = ({ fields }: Journalled) =>
  (JSON.parse(fields["record"] ?? "{}") as { policyVersion?: string }).policyVersion ?? "";

async function readiness(bot: Bot): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${bot.opsPort}/readyz`).catch(() => undefined);
  return answer === undefined ? "" : `${answer.status} ${await answer.text()}`;
}

const becomes = (bot: Bot, wanted: RegExp) =>
  looking(
    async () => wanted.test(await readiness(bot)) || undefined,
    15_000,
    async () => `the ${bot.role} stays ${await readiness(bot)}`,
  );

/** Messages to the audit channel by what they are about: `policy-2-C03AUDIT`, `policy-kept-2-…`. */
async function notices(stage: Stage): Promise<string[]> {
  const begin = `{${stage.namespace}}:notice:`;
  const keys = await stage.redis.keys(`${begin}policy-*`);
  return keys.map((key) => key.slice(begin.length));
}

export const policyRows: Row[] = [
  {
    id: "P20",
    fault:
      "two versions of the policy: a higher one during 100 requests, then a bad file; one of two workers keeps the lower one, and dies",
    must: "each request runs once or is canceled; the worker with the lower version sends nothing of the higher one's, and never brings its own back; all is told once",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage(
        { seed, vms: requests + 40, policy: "version: 1\naudit: { channel: C03AUDIT }" },
        async (stage) => {
          const shared = path.join(stage.folder, "gatehouse.yml");
          const own = path.join(stage.folder, "stale.yml");
          const before = await readFile(shared, "utf8");
          const changed = before.replace("vault-*", "safe-*").replace("version: 1", "version: 2");
          await writeFile(own, before);
          const how = { slot: "stale", env: { GATEHOUSE_CONFIG: own } };
          const stale = await stage.addBot("worker", how);
          const [worker] = stage.workers();
          if (!worker) throw new Error("there is no other worker");
          const reload = () => {
            for (const bot of [...stage.gateways(), ...stage.workers()]) bot.reload();
          };
          const take = fresh(stage);
          for (let n = 0; n < requests; n += 1) {
            await askEach(stage, take, ["vm restart"]);
            if (n === Math.floor(requests / 3)) {
              await writeFile(shared, changed);
              reload();
              stage.faults += 1;
            }
            if (n === Math.floor((2 * requests) / 3)) {
              await writeFile(shared, "access: [nobody]\n");
              reload();
              stage.faults += 1;
            }
          }
          await becomes(stale, /^503 .*policy: /);
          await stale.kill();
          const again = await stage.addBot("worker", how);
          stage.faults += 1;
          await becomes(again, /^503 .*policy: /);
          const journal = await stage.quiet(60_000);
          const versions = new Set(journal.map(versionOf));
          const newest = await stage.redis.hget(`{${stage.namespace}}:policy:in-force`, "rules");
          const ofNew = new Set(
            journal.filter((one) => versionOf(one) === newest).map(({ id }) => id),
          );
          const meddled = (await sentBy(stage, "stale")).filter((id) => ofNew.has(id));
          // A machine that is slow lets some expire unsent, which the checker judges
          const odd = journal.filter(
            ({ state, stage: facts }) => state === "cancelled" && !/policy/.test(facts.why ?? ""),
          );
          const done = journal.filter(({ state }) => state === "done").length;

          // It goes on by itself once it has the file, and alone
          await writeFile(own, changed);
          await becomes(again, /^200/);
          await worker.kill();
          await sleep(300);
          const [last] = await askEach(stage, take, ["vm restart"]);
          const after = await stage.until(
            ({ target, isFinal }) => target === last?.target && isFinal,
          );
          await stage.quiet();
          const told = (await notices(stage)).toSorted();
          const records = (await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+")).filter(
            ([, fields]) => fields.join(" ").includes('"what":"policy"'),
          );
          return judged(await stage.check(), [
            [`two versions had requests (${versions.size})`, versions.size === 2],
            [`the new one had some (${ofNew.size})`, ofNew.size >= requests / 4],
            [`who lacks it sent none of them (${meddled.length})`, meddled.length === 0],
            [
              `most ran (${done}), and none was canceled for anything but the policy (${odd.map((one) => one.stage.why).join("; ")})`,
              done > requests / 3 && odd.length === 0,
            ],
            [`it goes on with the current one (${after.state})`, after.state === "done"],
            [`one change in the trail (${records.length})`, records.length === 1],
            [
              `told once each (${told.join(", ")})`,
              told.length === 3 && told.some((id) => id.startsWith("policy-kept")),
            ],
          ]);
        },
      ),
  },
  {
    id: "P23",
    fault:
      "two policies without a version: one of two workers keeps the former one, dies during 40 requests, and starts again",
    must: "its policy is in force again, which is told; who lacks it changes nothing until an edit brings the other one back; each request runs once or is canceled",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, vms: 80, policy: "audit: { channel: C03AUDIT }" }, async (stage) => {
        const shared = path.join(stage.folder, "gatehouse.yml");
        const own = path.join(stage.folder, "stale.yml");
        const former = await readFile(shared, "utf8");
        const newer = former.replace("vault-*", "safe-*");
        await writeFile(own, former);
        const stale = await stage.addBot("worker", {
          slot: "stale",
          env: { GATEHOUSE_CONFIG: own },
        });
        const others = [...stage.gateways(), ...stage.workers()].filter((bot) => bot !== stale);
        const load = async (text: string) => {
          await writeFile(shared, text);
          for (const bot of others) bot.reload();
          stage.faults += 1;
        };
        const take = fresh(stage);
        const ask = async (many: number) => {
          for (let n = 0; n < many; n += 1) await askEach(stage, take, ["vm restart"]);
        };
        await ask(20);
        await load(newer);
        await becomes(stale, /^503 .*policy: /);
        await ask(20);
        await stale.kill();
        const again = await stage.addBot("worker", {
          slot: "stale",
          env: { GATEHOUSE_CONFIG: own },
        });
        stage.faults += 1;
        for (const bot of others) await becomes(bot, /^503 .*policy: /);
        const isBack = (await readiness(again)).startsWith("200");
        await load(`# back\n${newer}`);
        for (const bot of others) await becomes(bot, /^200/);
        await becomes(again, /^503 .*policy: /);
        const [last] = await askEach(stage, take, ["vm restart"]);
        const after = await stage.until(
          ({ target, isFinal }) => target === last?.target && isFinal,
        );
        const journal = await stage.quiet(60_000);
        const odd = journal.filter(
          ({ state, stage: facts }) => state === "cancelled" && !/policy/.test(facts.why ?? ""),
        );
        const told = (await notices(stage)).toSorted();
        const records = (await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+")).filter(
          ([, fields]) => fields.join(" ").includes('"what":"policy"'),
        );
        return judged(await stage.check(), [
          ["the policy that was loaded last is in force", isBack],
          [
            `none was canceled for anything but the policy (${odd.map((one) => one.stage.why).join("; ")})`,
            odd.length === 0,
          ],
          [`it goes on with the one that came back (${after.state})`, after.state === "done"],
          [`three changes in the trail (${records.length})`, records.length === 3],
          [`told once each (${told.join(", ")})`, told.length === 4],
        ]);
      }),
  },
];
