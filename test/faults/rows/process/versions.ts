import { setTimeout as sleep } from "node:timers/promises";
import { makeAnotherFormat } from "./another-format.ts";
import { askEach, fresh, judged, kinds, onStage, type Row } from "../row.ts";

export const versionRows: Row[] = [
  {
    id: "P18",
    fault:
      "processes of another stored format start while requests are open, and once everything has ended",
    must: "they start only once nothing is open and no process of the former runs; nothing is dropped",
    unknown: "no trace",
    async run({ seed }) {
      await using other = await makeAnotherFormat();
      return await onStage({ seed, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        const begin = async (slot: string) =>
          (await stage.addBot("worker", { slot, script: other.script })).refused ?? "it started";
        await askEach(stage, take);
        const amidst = await begin("other-amidst");
        stage.faults += 1;
        await stage.quiet(60_000);
        // Nothing is open, and the old processes run
        const beside = await begin("other-beside");
        stage.faults += 1;
        await Promise.all(stage.bots.map((bot) => bot.stop()));
        const done = (await stage.journal()).filter(({ isFinal }) => isFinal).length;
        const gateway = await stage.addBot("gateway", {
          slot: "other-gateway",
          script: other.script,
        });
        const worker = await stage.addBot("worker", { slot: "other", script: other.script });
        await stage.connected(1);
        const [last] = await askEach(stage, take, ["vm restart"]);
        const after = await stage.until(
          ({ target, isFinal }) => target === last?.target && isFinal,
        );
        await stage.quiet();
        const kept = (await stage.journal()).filter(({ isFinal }) => isFinal).length;
        const verdict = await stage.check();
        await Promise.all([gateway.stop(), worker.stop()]);
        const isRefused = (said: string) => /holds stored format \d+ with/.test(said);
        return judged(verdict, [
          [`refused beside open requests: ${amidst.slice(0, 200)}`, isRefused(amidst)],
          [`refused beside running processes: ${beside.slice(0, 200)}`, isRefused(beside)],
          [`works once all have stopped (${after.state})`, after.state === "done"],
          [`nothing of the other format is dropped (${done}, ${kept})`, kept === done + 1],
        ]);
      });
    },
  },
  {
    id: "P22",
    fault: "every process replaced one by one, twice, under 100 requests",
    must: "each exits cleanly; no one is refused; every request ends",
    unknown: "no trace",
    async run({ seed }) {
      return await onStage({ seed, vms: 120, workers: 2, gateways: 2 }, async (stage) => {
        const take = fresh(stage);
        let refused = 0;
        const asking = (async () => {
          for (let n = 0; n < 100; n++) {
            const command = kinds[n % kinds.length] ?? "vm restart";
            const asked = await stage.request(command, await take(command));
            if (!asked.acked) refused += 1;
            await sleep(150);
          }
        })();
        const ends: (number | string)[] = [];
        for (let round = 0; round < 2; round++)
          for (const old of stage.bots.filter((bot) => !bot.isGone())) {
            await stage.addBot(old.role === "gateway" ? "gateway" : "worker");
            await stage.connected(2);
            await old.stop();
            ends.push(await old.exited);
            stage.faults += 1;
          }
        await asking;
        await stage.quiet(60_000);
        return judged(await stage.check(), [
          [`each ended with 0 (${ends.join(" ")})`, ends.every((how) => how === 0)],
          [`nobody was refused (${refused})`, refused === 0],
        ]);
      });
    },
  },
];
