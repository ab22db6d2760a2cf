import { appendFile, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { hears } from "../../people/hearing.ts";
import { cannotLimitFiles, limitFiles } from "../../stage/limit-files.ts";
import { looking } from "../../stage/looking.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";

async function ledgersOf(stage: Stage, slot: string) {
  const folder = path.join(stage.folder, slot, "ledger");
  const files = (await readdir(folder)).map((name) => path.join(folder, name));
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  const entries = texts.flatMap((text) => text.split("\n")).filter(isWhole);
  return { files, entries };
}

function isWhole(line: string): boolean {
  try {
    return typeof (JSON.parse(line) as { request?: unknown }).request === "string";
  } catch {
    return false;
  }
}

/** Records of the trail that are about this. */
async function recordsOf(stage: Stage, what: string): Promise<string[]> {
  const rows = await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+");
  return rows
    .map(([, fields]) => fields[fields.indexOf("record") + 1] ?? "")
    .filter((record) => record.includes(`"what":"${what}"`));
}

const frozenBy = (stage: Stage) => stage.redis.get(`{${stage.namespace}}:freeze`);

export const ledgerRows: Row[] = [
  {
    id: "U1",
    fault: "the disk of the ledger is full",
    must: "no send without an entry: changes freeze, and refreeze after a thaw while the disk is full",
    unknown: "none",
    async run({ seed }) {
      const lacking = cannotLimitFiles();
      if (lacking !== undefined) return { wrong: [], notes: [], notRun: lacking };
      return onStage(
        { seed, workers: 0, policy: "audit: { channel: C03AUDIT }" },
        async (stage) => {
          // Without a log the ledger is the only file that it writes
          const worker = await stage.addBot("worker", { slot: "full", log: "/dev/null" });
          const take = fresh(stage);
          await askEach(stage, take);
          await stage.quiet();
          const [file = ""] = (await ledgersOf(stage, "full")).files;
          const before = (await stage.service.writes()).length;

          await limitFiles(worker.pid, (await stat(file)).size + 40);
          stage.faults += 1;
          const during = await askEach(stage, take);
          const journal = await stage.quiet();
          // What is asked after the first of them froze all changes makes no request
          const taken = journal.filter(({ target }) => during.some((one) => one.target === target));
          const freeze = await frozenBy(stage);
          await hears(stage, "ada", /froze all changes: the send ledger can't be written/);
          await stage.slack.act("olivia", "types", "ops", "/vm list");
          await hears(stage, "olivia", /vm-0000-019/);
          const refused = await stage.request("vm restart", await take("vm restart"));
          await hears(stage, "olivia", /frozen by Gatehouse: the send ledger can't be written/);
          for (const who of ["olivia", "amir"])
            await stage.slack.act(who, "types", "ops", "/gatehouse thaw");
          await hears(stage, "amir", /Only \S*ada can /);
          const stillFrozen = await frozenBy(stage);
          // A thaw alone mends no disk
          await stage.slack.act("ada", "types", "ops", "/gatehouse thaw");
          await hears(stage, "ada", /Changes are allowed again/);
          await askEach(stage, take, ["vm restart"]);
          await stage.quiet();
          const frozenAgain = await frozenBy(stage);
          const sent = (await stage.service.writes()).length - before;

          await limitFiles(worker.pid, "unlimited");
          await stage.slack.act("ada", "types", "ops", "/gatehouse thaw");
          const isThawed = async () => ((await frozenBy(stage)) === null ? true : undefined);
          await looking(isThawed, 10_000, async () => "it stays frozen");
          const asked = await askEach(stage, take);
          const after = await stage.quiet();
          const done = asked.filter(({ target }) =>
            after.some((one) => one.target === target && one.state === "done"),
          );
          const sends = await stage.service.writes();
          const { entries } = await ledgersOf(stage, "full");
          // Without a folder for its ledger no worker starts at all
          await mkdir(path.join(stage.folder, "no-folder"));
          await writeFile(path.join(stage.folder, "no-folder", "ledger"), "");
          const barred = await stage.addBot("worker", { slot: "no-folder" });
          return judged(
            await stage.check(),
            [
              [`nothing was sent without an entry (${sent})`, sent === 0],
              [
                `each that was taken is cancelled (${taken.map(({ state }) => state).join(", ")})`,
                taken.length > 0 &&
                  taken.every(({ state }) => state === "cancelled") &&
                  freeze !== null,
              ],
              [
                "what was asked while frozen was refused at once",
                !journal.some(({ target }) => target === refused.target),
              ],
              ["only an administrator ends it", stillFrozen !== null],
              ["it freezes anew while the disk is full", frozenAgain !== null],
              [
                `all goes on afterwards (${done.length} of ${asked.length})`,
                done.length === asked.length,
              ],
              [
                `each send stands in the ledger, whole (${entries.length} of ${sends.length})`,
                entries.length === sends.length,
              ],
              ["a worker without a ledger does not start", barred.refused !== undefined],
            ],
            { notes: [freeze ?? "", barred.refused ?? "it started"] },
          );
        },
      );
    },
  },
  {
    id: "U4",
    fault: "a crash in the middle of a ledger line, and while sealing",
    must: "each torn line is on record once; nothing freezes; each send has its entry; the chain is intact",
    unknown: "no trace",
    run: ({ seed, times }) =>
      onStage({ seed, workers: 0, gateways: 1, vms: 120 }, async (stage) => {
        const take = fresh(stage);
        let [sealer] = stage.gateways();
        // Killed while records wait to be sealed; the next one goes on where it stopped
        for (let n = 0; n < Math.min(6, times); n++) {
          const worker = await stage.addBot("worker", { slot: "torn" });
          await worker.arm({ point: "ledger", do: "kill" });
          await askEach(stage, take);
          await worker.hit("ledger");
          await worker.exited;
          const next = await stage.addBot("gateway", { slot: `sealer-${n}` });
          await sealer?.kill();
          sealer = next;
          await looking(
            async () =>
              (await stage.slack.question<number>("connections")) === 1 ? true : undefined,
            10_000,
            async () =>
              `the next gateway does not connect: ${await stage.slack.question<number>("connections")}`,
          );
          stage.faults += 2;
          const { files } = await ledgersOf(stage, "torn");
          await appendFile(files[0] ?? "", '{"request":"r-half","attempt":1,"at":17');
        }
        const torn = Math.min(6, times);
        await stage.addBot("worker", { slot: "torn" });
        await stage.quiet(45_000);
        const said = await recordsOf(stage, "ledger-torn");
        await stage.addBot("worker", { slot: "torn" });
        const saidAgain = await recordsOf(stage, "ledger-torn");
        await stage.slack.act("ada", "types", "ops", "/gatehouse audit verify");
        const verdict = await hears(stage, "ada", /audit trail is/);
        const { entries } = await ledgersOf(stage, "torn");
        const writes = await stage.service.writes();
        return judged(await stage.check(), [
          [
            `each torn line is on record, once (${said.length} of ${torn})`,
            said.length === torn && saidAgain.length === torn,
          ],
          ["none of them froze anything", (await frozenBy(stage)) === null],
          [
            `each send has its entry (${entries.length} for ${writes.length})`,
            entries.length >= writes.length,
          ],
          [`the chain is whole: ${verdict.text}`, verdict.text.includes("intact")],
        ]);
      }),
  },
];
