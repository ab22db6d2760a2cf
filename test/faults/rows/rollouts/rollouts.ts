import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../../../../sandbox/random.ts";
import { shuffle } from "../../../support/random.ts";
import {
  beginRollout,
  begunAfterStop,
  cardWith,
  endsRight,
  lookedAfter,
  numbered,
  pressOn,
  restartsSent,
  rolloutNow,
  rolloutUntil,
  saidOf,
} from "./rollout-stage.ts";
import { judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";

const twelve = numbered(0, 12);

/** What the checker holds against the journal: whoever says yes to a rollout asks for each of its VMs. */
function rememberAsked(stage: Stage, vms: readonly string[]): void {
  for (const target of vms)
    stage.asked.push({ who: "olivia", command: "vm restart", target, acked: true });
}

/** Points at which a worker dies while it looks after a rollout, and while it performs one of its requests. */
const points = ["roll-claimed", "roll-submitted", "gate", "claim", "answer", "move", "watch"];

const workers = (stage: Stage, count: number) =>
  Promise.all(Array.from({ length: count }, () => stage.addBot("worker")));

async function killAll(stage: Stage, bots: readonly Bot[]): Promise<void> {
  await Promise.all(bots.map((bot) => bot.kill()));
  stage.faults += bots.length;
}

export const rolloutRows: Row[] = [
  {
    id: "RO1",
    fault: "a rollout of 12; its worker is killed nine times at random",
    must: "all twelve end; no VM is restarted twice; the two messages say how each ended",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 0 }, async (stage) => {
        const random = createRandom(seed);
        const id = await beginRollout(stage, twelve, { most: 2, failures: 12 });
        rememberAsked(stage, twelve);
        const where: string[] = [];
        const order = shuffle([...points], random);
        for (let n = 0; n < points.length + 2 && !(await rolloutNow(stage, id)).isFinal; n++) {
          const bot = await stage.addBot("worker", { slot: `doomed-${n}`, begin: false });
          const isTimed = n === 3 || n === 6;
          const point = isTimed ? "" : (order.shift() ?? "");
          if (!isTimed) await bot.arm({ point, do: "kill", nth: 1 + Math.floor(random() * 2) });
          await bot.begin();
          if (isTimed) await sleep(200 + random() * 600).then(() => bot.kill());
          else await Promise.race([bot.exited, rolloutUntil(stage, id, ({ isFinal }) => isFinal)]);
          if (!bot.isGone()) continue;
          stage.faults += 1;
          where.push(isTimed ? "any moment" : point);
        }
        await workers(stage, 2);
        const rollout = await rolloutUntil(stage, id, ({ isFinal }) => isFinal);
        await stage.quiet();
        return judged(
          await stage.check(),
          [
            [`at least 5 kills (${stage.faults})`, stage.faults >= 5],
            [
              `all twelve have ended (${rollout.state})`,
              rollout.state === "done" && rollout.progress.next === 12,
            ],
            ...(await endsRight(stage, id, twelve)),
          ],
          { notes: [`killed at ${where.join(", ")}`] },
        );
      }),
  },
  {
    id: "RO2",
    fault: "a rollout is paused while its worker is dead, and as its workers are killed",
    must: "it stays paused until resumed, then ends as in RO1",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, transitionMs: [400, 600] }, async (stage) => {
        const dies = await stage.addBot("worker");
        await dies.arm({ point: "roll-submitted", do: "kill", nth: 3 });
        const id = await beginRollout(stage, twelve, { most: 2, failures: 12, canary: true });
        rememberAsked(stage, twelve);
        await dies.exited;
        stage.faults += 1;
        const ts = await cardWith(stage, id, /^Pause$/m);
        await pressOn(stage, "Pause", ts);
        await rolloutUntil(stage, id, ({ state }) => state === "paused");
        let bots = await workers(stage, 2);
        await stage.quiet();
        await lookedAfter(stage, id);
        const before = await restartsSent(stage);
        await killAll(stage, bots);
        bots = await workers(stage, 2);
        const paused = await lookedAfter(stage, id);
        const after = await restartsSent(stage);
        await cardWith(stage, id, /Paused by/);
        await pressOn(stage, "Resume", ts);
        await rolloutUntil(stage, id, ({ progress }) => progress.next >= 6);
        await cardWith(stage, id, /^Pause$/m);
        // In the same moment
        await Promise.all([pressOn(stage, "Pause", ts), killAll(stage, bots)]);
        const second = await rolloutUntil(stage, id, ({ state }) => state === "paused");
        bots = await workers(stage, 2);
        await stage.quiet();
        const still = await lookedAfter(stage, id);
        await cardWith(stage, id, /Paused by/);
        await pressOn(stage, "Resume", ts);
        const end = await rolloutUntil(stage, id, ({ isFinal }) => isFinal);
        await stage.quiet();
        return judged(
          await stage.check(),
          [
            [
              `stays paused (${paused.state}, ${still.state})`,
              paused.state === "paused" && still.state === "paused",
            ],
            [
              `and nothing begins: ${after.length - before.length}`,
              after.length === before.length && before.length < 12,
            ],
            ["nor the second time", second.progress.next === still.progress.next],
            [
              `resumed by a press, it ends (${end.state})`,
              end.state === "done" && end.progress.next === 12,
            ],
            ...(await endsRight(stage, id, twelve)),
          ],
          { notes: [`${before.length} restarts before the first pause`] },
        );
      }),
  },
  {
    id: "RO3",
    fault: "a rollout is stopped while its worker is dead, another as its workers are killed",
    must: "nothing more begins",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, transitionMs: [400, 600] }, async (stage) => {
        const dies = await stage.addBot("worker");
        // Claimed for the third time: some have ended, some are under way, some are in the rollout alone
        await dies.arm({ point: "roll-claimed", do: "kill", nth: 3 });
        const first = await beginRollout(stage, twelve, { most: 3, failures: 12 });
        await dies.exited;
        stage.faults += 1;
        const card = await cardWith(stage, first, /^Stop$/m);
        const before = await restartsSent(stage);
        await pressOn(stage, "Stop", card);
        await rolloutUntil(stage, first, ({ state }) => state === "ending" || state === "stopped");
        // Whoever takes over dies as well
        const next = await stage.addBot("worker", { begin: false });
        await next.arm({ point: "roll-submitted", do: "kill" });
        await next.begin();
        await Promise.race([next.exited, rolloutUntil(stage, first, ({ isFinal }) => isFinal)]);
        stage.faults += next.isGone() ? 1 : 0;
        let bots = await workers(stage, 2);
        const one = await rolloutUntil(stage, first, ({ isFinal }) => isFinal);
        const after = await restartsSent(stage);

        const eight = numbered(12, 20);
        const second = await beginRollout(stage, eight, { most: 2, failures: 8 });
        const ts = await cardWith(stage, second, /^Stop$/m);
        await rolloutUntil(stage, second, ({ progress }) => progress.next >= 3);
        await Promise.all([pressOn(stage, "Stop", ts), killAll(stage, bots)]);
        await rolloutUntil(stage, second, ({ state }) => state === "ending" || state === "stopped");
        bots = await workers(stage, 2);
        const two = await rolloutUntil(stage, second, ({ isFinal }) => isFinal);
        await stage.quiet();
        rememberAsked(stage, twelve.slice(0, one.progress.next));
        rememberAsked(stage, eight.slice(0, two.progress.next));
        const late = [
          ...(await begunAfterStop(stage, first)),
          ...(await begunAfterStop(stage, second)),
        ];
        return judged(
          await stage.check(),
          [
            [
              `both were stopped (${one.state}, ${two.state})`,
              one.state === "stopped" && two.state === "stopped",
            ],
            [
              `nobody alive at the Stop, so nothing is sent after it (${before.length}, ${after.length})`,
              after.length === before.length && before.length > 0,
            ],
            [`nothing further begins: ${late.join(" ")}`, late.length === 0],
            ["some of each were left", before.length < 12 && two.progress.next < 8],
            ...(await endsRight(stage, first, twelve)),
            ...(await endsRight(stage, second, eight)),
          ],
          {
            notes: [`${before.length} of 12 and ${two.progress.next} of 8 had begun`],
          },
        );
      }),
  },
  {
    id: "RO4",
    fault:
      "Slack hangs on the rollout's message and all processes are killed; the answer to its last message is lost",
    must: "each message is in Slack once; all twelve end",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const storm = (more: object) =>
          stage.slack.question("addWeather", {
            method: "chat.postMessage",
            times: 1,
            where: { channel: "C01OPS" },
            ...more,
          });
        await storm({ kind: "hang", applied: true });
        const id = await beginRollout(stage, twelve, { most: 2, failures: 12 });
        rememberAsked(stage, twelve);
        await cardWith(stage, id, /0 of 12/);
        await Promise.all([...stage.gateways(), ...stage.workers()].map((bot) => bot.kill()));
        stage.faults += 3;
        await stage.addBot("gateway");
        await storm({ kind: "lost-after" });
        await workers(stage, 2);
        const rollout = await rolloutUntil(stage, id, ({ isFinal }) => isFinal);
        await stage.quiet();
        const right = await endsRight(stage, id, twelve);
        const lookUps =
          (await stage.slack.calls("conversations.history")).length +
          (await stage.slack.calls("conversations.replies")).length;
        return judged(await stage.check(), [
          [`all twelve have ended (${rollout.state})`, rollout.state === "done"],
          ...right,
          [`looked for before it is said again (${lookUps})`, lookUps >= 2],
          ["one of each", (await saidOf(stage, id, "card")).length === 1],
        ]);
      }),
  },
];
