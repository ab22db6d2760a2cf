import {
  allSaid,
  digestPolicy,
  digestsIn,
  haveLooked,
  hour,
  knowSchedules,
  loadedWorker,
  minute,
  setTo,
  startAt,
  status,
} from "./digest-stage.ts";
import { looking } from "../../stage/looking.ts";
import { type Expectation, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";

const zone = "Europe/Paris";

/** The next two changes of the clocks, each with what workers do around it and how many digests there are by then. */
function changesOfClocks() {
  const first = Temporal.Now.zonedDateTimeISO(zone).getTimeZoneTransition("next");
  const second = first?.getTimeZoneTransition("next");
  return [first, second].flatMap((jump) => {
    if (!jump) return [];
    const isSpring = jump.offsetNanoseconds > jump.subtract({ seconds: 1 }).offsetNanoseconds;
    return [{ at: jump.epochMilliseconds, date: jump.toPlainDate(), isSpring }];
  });
}

/** Minutes from the jump, and how many digests there are then. The jump is at 02:00 or 03:00; `dies`: who makes it is killed. */
const around: Readonly<
  Record<
    "spring" | "autumn",
    readonly (readonly [minutes: number, digests: number, dies?: "dies"])[]
  >
> = {
  // 02:30 is jumped over: it comes at 03:30, half an hour after the jump; then a day of 23 hours
  spring: [
    [-31, 0],
    [-1, 0],
    [1, 0],
    [29, 0],
    [31, 1, "dies"],
    [120, 1],
    [23 * 60 + 29, 1],
    [23 * 60 + 31, 2],
    [24 * 60 + 31, 2],
  ],
  // 02:30 comes twice, an hour apart; then a day of 25 hours
  autumn: [
    [-31, 0],
    [-29, 1, "dies"],
    [29, 1],
    [31, 1],
    [120, 1],
    [23 * 60 + 31, 1],
    [24 * 60 + 29, 1],
    [24 * 60 + 31, 2],
  ],
};

/** Two workers go over one change, from before it until the day after. */
async function overTheChange(
  stage: Stage,
  change: ReturnType<typeof changesOfClocks>[number],
): Promise<Expectation[]> {
  const expectations: Expectation[] = [];
  const season = change.isSpring ? "spring" : "autumn";
  const nameOn = (date: Temporal.PlainDate) => `digest-${status}-${date.toString()}-0230-${zone}`;
  const slots = [nameOn(change.date), nameOn(change.date.add({ days: 1 }))];
  const made = async () => {
    const ends = slots.map((slot) =>
      stage.redis.hget(`{${stage.namespace}}:digest-slot:${slot}`, "ended"),
    );
    return (await Promise.all(ends)).filter((end) => end === "posted").length;
  };
  let bots: Bot[] = [];
  for (const [minutes, wanted, dies] of around[season]) {
    const now = change.at + minutes * minute;
    if (bots.length === 0) {
      await knowSchedules(stage, now - hour, 1);
      bots = await Promise.all([loadedWorker(stage), loadedWorker(stage)]);
      await Promise.all(bots.map((bot) => startAt(bot, now)));
    }
    if (dies) {
      for (const bot of bots) await bot.arm({ point: "digest", what: slots[0] ?? "", do: "kill" });
      const next = await loadedWorker(stage);
      for (const bot of bots) await setTo(bot, now);
      await Promise.race(bots.map((bot) => bot.hit("digest", 30_000)));
      await looking(
        async () => (bots.some((bot) => bot.isGone()) ? true : undefined),
        5000,
        async () => "who made the digest lives on",
      );
      stage.faults += 1;
      for (const bot of bots) bot.disarm();
      await startAt(next, now);
      bots = [...bots.filter((bot) => !bot.isGone()), next];
    }
    for (const bot of bots) await setTo(bot, now);
    await haveLooked(stage);
    // Until what a dead one held is free again; and BullMQ, which sleeps for up to 10 s, doesn't see that its clock jumps
    for (let tries = 0; tries < 20 && (await made()) < wanted; tries++) await haveLooked(stage);
    const there = await made();
    expectations.push([
      `${season}, ${minutes} min from the jump: ${there} of ${wanted}`,
      there === wanted,
    ]);
  }
  await allSaid(stage);
  const told = (await digestsIn(stage))
    .map(({ slot }) => slot)
    .filter((slot) => slots.includes(slot));
  expectations.push([`one message a day: ${told.join(" ")}`, told.join() === slots.join()]);
  for (const bot of bots) await bot.kill();
  return expectations;
}

export const summerTimeRows: Row[] = [
  {
    id: "C4",
    fault: "a digest at 02:30 on both days the clocks change; its worker is killed",
    must: "one digest on each day",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage(
        {
          seed,
          workers: 0,
          oneClock: true,
          policy: digestPolicy([{ channel: status, at: "02:30", timezone: zone }]),
        },
        async (stage) => {
          const expectations: Expectation[] = [];
          const changes = changesOfClocks();
          for (const change of changes.toSorted((a, b) => a.at - b.at))
            expectations.push(...(await overTheChange(stage, change)));
          const springs = changes.filter(({ isSpring }) => isSpring).length;
          return judged(
            await stage.check(),
            [
              ...expectations,
              ["both kinds of days were seen", changes.length === 2 && springs === 1],
            ],
            { notes: [`${changes.map(({ date }) => date.toString()).join(" and ")} in ${zone}`] },
          );
        },
      ),
  },
];
