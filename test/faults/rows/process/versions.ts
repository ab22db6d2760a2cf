import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeNewerVersion, newerState } from "./newer-version.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";

/** A round of requests begins this often (ms). */
const everyMs = 500;

/** What a process sent, by its own ledger. */
async function sentBy(stage: Stage, slot: string): Promise<string[]> {
  const folder = path.join(stage.folder, slot, "ledger");
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(path.join(folder, name), "utf8")),
  );
  return texts
    .flatMap((text) => text.split("\n"))
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { request: string }).request);
}

async function writtenBy(stage: Stage, version: number) {
  return (await stage.journal()).filter(
    ({ fields }) => (JSON.parse(fields["record"] ?? "{}") as { v?: number }).v === version,
  );
}

export const versionRows: Row[] = [
  {
    id: "P18",
    fault: "an older and a newer version side by side, and back again",
    must: "the older one sends nothing of the newer one's and keeps what it does not know; a step back freezes nothing",
    unknown: "no trace",
    async run({ seed, times }) {
      const rounds = (times >= 50 ? 60_000 : 10_000) / everyMs;
      await using newer = await makeNewerVersion();
      return await onStage({ seed, vms: rounds * 3 + 20 }, async (stage) => {
        const { script } = newer;
        const gateway = await stage.addBot("gateway", { slot: "newer-gateway", script });
        const worker = await stage.addBot("worker", { slot: "newer", script });
        await stage.connected(2);
        const take = fresh(stage);
        let next = worker;
        for (let n = 0; n < rounds; n++) {
          await askEach(stage, take);
          // Halfway the newer worker dies, and for some seconds only the older one is there
          if (n === Math.floor(rounds / 2)) {
            await worker.kill();
            stage.faults += 1;
          }
          if (n === Math.floor(rounds / 2) + 6)
            next = await stage.addBot("worker", { slot: "newer-2", script });
          await sleep(everyMs);
        }
        await stage.quiet(60_000);
        const [theirs, ours] = [await writtenBy(stage, 2), await writtenBy(stage, 1)];
        const newOnes = new Set(theirs.map(({ id }) => id));
        const meddled = (await sentBy(stage, "worker-1")).filter((id) => newOnes.has(id));
        const rested = theirs.filter(({ history }) => history.includes(newerState)).length;
        const marked = theirs.filter(({ fields }) => fields["record"]?.includes('"weight"')).length;

        // Back to the older version, with the newer one's ledger
        await Promise.all([next.kill(), gateway.kill()]);
        await stage.addBot("worker", { slot: "newer-2" });
        const [last] = await askEach(stage, take, ["vm restart"]);
        const after = await stage.until(
          ({ target, isFinal }) => target === last?.target && isFinal,
        );
        await stage.quiet();
        const frozen = await stage.redis.get(`{${stage.namespace}}:freeze`);
        const verdict = await stage.check();
        // The checker doesn't know the newer version's state
        const gaps = verdict.findings.filter((finding) => finding.includes(newerState)).length;
        return judged(
          verdict,
          [
            [
              `both had work (${theirs.length}, ${ours.length})`,
              theirs.length > 5 && ours.length > 5,
            ],
            [
              `the older one sent none of the newer one's (${meddled.length})`,
              meddled.length === 0,
            ],
            [
              `each rested (${rested}) and kept its field (${marked})`,
              rested === theirs.length && marked === theirs.length,
            ],
            [
              `a step back freezes nothing (${after.state}): ${frozen ?? ""}`,
              frozen === null && after.state === "done",
            ],
          ],
          {
            instead: { auditGaps: Math.max(0, verdict.auditGaps - gaps) },
            notes: [`${theirs.length} of the newer version, ${ours.length} of the older`],
          },
        );
      });
    },
  },
];
