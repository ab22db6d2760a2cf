import { setTimeout as sleep } from "node:timers/promises";
import { startApprovers } from "../../people/approvers.ts";
import type { Rule } from "../../stage/bot.ts";
import { looking } from "../../stage/looking.ts";
import { fillSlack, people } from "../../people/people.ts";
import { prepareWish, shares } from "../../people/plan.ts";
import { createRandom } from "../../../../sandbox/random.ts";
import { recoveries } from "../../check/recovery.ts";
import { type How, judged, onStage, type Story, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Hit } from "../../stage/start-bot.ts";
import { type Wish, wishFor } from "../../people/wishes.ts";

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
  ["P1", "stored", "gateway", "stored, before the ack"],
  ["P1b", "ack", "gateway", "after the ack, before the journal"],
  ["P2", "step:pending", "gateway", "in the journal, before the queue"],
  ["P3", "step:job", "gateway", "in the queue"],
  ["P4", "claim", "worker", "claimed, before the ledger"],
  ["P5", "ledger", "worker", "in the ledger, before the send"],
  ["P6", "send", "worker", "right before the socket"],
  ["P6b", "send", "worker", "while the call is on the wire", { afterMs: 40 }],
  ["P7", "answer", "worker", "answered, before the move"],
  ["P8", "move", "worker", "moved, before anything else"],
  ["P8c", "request:pending", "worker", "moved, before the job of its message is added"],
  ["P8b", "watch", "worker", "after a poll"],
  ["P9", "post", "worker", "before a post"],
  ["P9b", "posting", "worker", "marked as posting, before the call"],
  ["P9c", "posted", "worker", "posted, before that is noted"],
];

/** What a round is given to meet all its kills (ms). */
const roundMs = 6000;
/** How many wishes each person has in a round, at most. */
const mostWishes = 4;

async function killAt(
  stage: Stage,
  how: How,
  point: string,
  role: "worker" | "gateway",
  more: Partial<Rule>,
): Promise<Story> {
  await fillSlack(stage);
  const isPost = point.startsWith("post");
  const nextWish = await wishesInTurn(stage, how.seed, isPost);
  const approvers = startApprovers(stage, createRandom(how.seed), { denied: 0, unanswered: 0 });
  const hits: Hit[] = [];
  // Long enough on the wire that a kill finds it there
  if (more.afterMs) await stage.service.weather({ match: "writes", slowMs: 120 });
  const steady = await stage.addBot(role === "worker" ? "gateway" : "worker", { slot: "steady" });
  if (isPost) await steady.stop();
  const most = 4 * Math.ceil(how.times / batch);
  for (let round = 0; stage.faults < how.times && round < most; round++) {
    const size = Math.min(batch, how.times - stage.faults);
    const doomed = await Promise.all(
      Array.from({ length: size }, (_, at) => stage.addBot(role, { slot: `doomed-${at}` })),
    );
    // With posts the gateway delivers too: it must not take the work from those that are to die
    if (isPost) doomed.push(await stage.addBot("gateway", { slot: "asking" }));
    for (const bot of doomed) await bot.arm({ point, do: "kill", ...more });
    const isOver = () => doomed.every((bot) => bot.isGone());
    const asking = people.slice(0, size).map(async (who) => {
      for (let n = 0; n < mostWishes && !isOver(); n++)
        await wishFor(stage, await nextWish(), { who, channel: "ops" });
    });
    await Promise.race([Promise.all(doomed.map((bot) => bot.exited)), sleep(roundMs)]);
    stage.faults += doomed.filter((bot) => bot.isGone()).length;
    const after = await Promise.all([
      stage.addBot(role, { slot: "after" }),
      ...(isPost ? [stage.addBot("gateway", { slot: "listening" })] : []),
    ]);
    await Promise.all(asking);
    await Promise.all(doomed.map((bot) => bot.kill()));
    for (const bot of doomed) hits.push(...bot.hits);
    await stage.quiet(45_000);
    await settleDrafts(stage);
    await Promise.all(after.map((bot) => bot.kill()));
  }
  await approvers.end();
  const verdict = await stage.check();
  const journal = await stage.journal();
  return {
    ...judged(verdict, [["every kill was made", stage.faults >= how.times]]),
    recoveries: recoveries(hits, journal),
  };
}

/** Requests of all commands, one after the other; those without a dialog where nobody could be there to show one. */
async function wishesInTurn(
  stage: Stage,
  seed: number,
  withoutDialog: boolean,
): Promise<() => Promise<Wish>> {
  const vms = (await stage.service.vms()).map(({ id, status }) => ({ id, status }));
  const random = createRandom(seed);
  const direct = ["vm start", "vm stop", "vm restart", "vm snapshot"];
  const commands = withoutDialog ? direct : shares.map(([command]) => command);
  let n = 0;
  return () => prepareWish(stage, commands[n % commands.length] ?? "", n++, vms, random);
}

/** What waits for approval waits for somebody who presses, not for the process that starts next. */
async function settleDrafts(stage: Stage): Promise<void> {
  const drafts = async () =>
    (await stage.journal()).some(({ state }) => state === "draft") ? undefined : true;
  await looking(drafts, 30_000, async () => "some still wait for approval");
  await stage.quiet(45_000);
}

export const killRows: Row[] = points.map(([id, point, role, what, more = {}]) => ({
  id,
  fault: `${role} killed: ${what}`,
  must:
    role === "gateway"
      ? "what was acknowledged is neither lost nor requested twice"
      : "another process takes over; nothing is sent or said twice",
  unknown: role === "gateway" ? "none" : "no trace",
  run: (how) =>
    onStage(
      { seed: how.seed, workers: 0, gateways: 0, vms: how.times * 8 + 60, ackTimeoutMs: 800 },
      (stage) => killAt(stage, how, point, role, more),
    ),
}));
