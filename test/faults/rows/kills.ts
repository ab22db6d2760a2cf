import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "../bot.ts";
import { fresh, type How, judged, kindsOf, onStage, type Outcome, type Row } from "../row.ts";
import type { Stage } from "../stage.ts";

/** Kills so many at once; each is a process of its own. */
const batch = 6;

/** Points at which the process that performs, posts, or listens is killed. */
const points: readonly (readonly [
  id: string,
  point: string,
  role: "worker" | "gateway",
  what: string,
  more?: Partial<Rule>,
])[] = [
  ["P1", "intake", "gateway", "written down, before the ack"],
  ["P1b", "ack", "gateway", "after the ack, before the journal"],
  ["P2", "journal", "gateway", "in the journal, before the queue"],
  ["P3", "enqueue", "gateway", "in the queue"],
  ["P4", "claim", "worker", "claimed, before the ledger"],
  ["P5", "ledger", "worker", "in the ledger, before the send"],
  ["P6", "send", "worker", "right before the socket"],
  ["P6b", "send", "worker", "while the call is on the wire", { afterMs: 40 }],
  ["P7", "answer", "worker", "answered, before the move"],
  ["P8", "move", "worker", "moved, before anything else"],
  ["P8b", "watch", "worker", "after a poll"],
  ["P9", "post", "worker", "before a post"],
  ["P9b", "posting", "worker", "marked as posting, before the call"],
  ["P9c", "posted", "worker", "posted, before that is noted"],
];

async function killAt(
  stage: Stage,
  how: How,
  point: string,
  role: "worker" | "gateway",
  more: Partial<Rule>,
): Promise<Outcome> {
  const take = fresh(stage);
  let n = 0;
  // Long enough on the wire that a kill finds it there
  if (more.afterMs) await stage.service.weather({ match: "writes", slowMs: 120 });
  const steady = await stage.addBot(role === "worker" ? "gateway" : "worker", { slot: "steady" });
  if (point.startsWith("post")) await steady.stop();
  const most = 4 * Math.ceil(how.times / batch);
  for (let round = 0; stage.faults < how.times && round < most; round++) {
    const size = Math.min(batch, how.times - stage.faults);
    const doomed = await Promise.all(
      Array.from({ length: size }, (_, at) => stage.addBot(role, { slot: `doomed-${at}` })),
    );
    for (const bot of doomed) await bot.arm({ point, do: "kill", ...more });
    const asking = point.startsWith("post")
      ? await stage.addBot("gateway", { slot: "asking" })
      : undefined;
    // With posts the gateway delivers too: it must not take the work from those that are to die
    if (asking) await asking.arm({ point, do: "kill", ...more });
    const kinds = kindsOf(stage);
    const type = async () => {
      const command = kinds[n++ % kinds.length] ?? "vm stop";
      const vm = await take(command);
      for (let tries = 0; tries < 20; tries++) {
        if ((await stage.ask(command, vm)).acked) return;
        await sleep(30);
      }
    };
    for (let tries = 0; tries < 5 && doomed.some((bot) => !bot.isGone()); tries++) {
      const alive = doomed.filter((bot) => !bot.isGone());
      if (role === "gateway") for (const _ of alive) await type();
      else await Promise.all(alive.map(() => type().catch(() => undefined)));
      await Promise.race([Promise.all(doomed.map((bot) => bot.exited)), sleep(1200)]);
    }
    stage.faults += [...doomed, asking].filter((bot) => bot?.isGone()).length;
    const [after, listening] = await Promise.all([
      stage.addBot(role, { slot: "after" }),
      asking ? stage.addBot("gateway", { slot: "listening" }) : undefined,
    ]);
    await Promise.all(doomed.map((bot) => bot.kill()));
    await asking?.kill();
    await stage.quiet(45_000);
    await Promise.all([after.kill(), listening?.kill()]);
  }
  const verdict = await stage.check();
  const unknowns = (await stage.journal()).filter(({ state }) => state === "unknown");
  return judged(
    verdict,
    [
      ["every kill was made", stage.faults >= how.times],
      ["only restarts may be unknown", unknowns.every(({ command }) => command === "vm restart")],
    ],
    { mayBeUnknown: role === "worker" && !point.startsWith("post") },
  );
}

export const killRows: Row[] = points.map(([id, point, role, what, more = {}]) => ({
  id,
  what: `kill -9 ${what}`,
  quick: ["P4", "P6", "P7"].includes(id),
  run: (how) =>
    onStage(
      { seed: how.seed, workers: 0, gateways: 0, vms: how.times * 8 + 60, ackTimeoutMs: 800 },
      (stage) => killAt(stage, how, point, role, more),
    ),
}));
