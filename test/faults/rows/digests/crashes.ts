import {
  allSaid,
  day,
  digestOf,
  onDigestStage,
  digestsIn,
  hour,
  knowSchedules,
  loadedWorker,
  minute,
  ops,
  setTo,
  slotEnded,
  slotName,
  startAt,
  status,
  today,
  toldOnce,
  workerAt,
} from "./digest-stage.ts";
import { looking } from "../../stage/looking.ts";
import { askEach, fresh, judged, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";

const nine = 9 * hour;

/** Two workers that are started anew whenever they die, which they do of this one digest, each time. */
function superviseDying(
  stage: Stage,
  poison: string,
  at: number,
  afterDeath: () => Promise<unknown>,
) {
  const over = Promise.withResolvers<void>();
  let isOver = false;
  let deaths = 0;
  async function keepUp(slot: string): Promise<Bot> {
    for (;;) {
      const bot = await loadedWorker(stage, slot);
      await bot.arm({ point: "digest", what: poison, do: "kill" });
      await startAt(bot, at);
      await Promise.race([bot.exited, over.promise]);
      if (isOver) return bot;
      deaths += 1;
      stage.faults += 1;
      await afterDeath();
    }
  }
  const kept = ["p19-0", "p19-1"].map(keepUp);
  for (const bot of kept) bot.catch(() => undefined); // the row has failed by then, and says why
  return {
    async end() {
      isOver = true;
      over.resolve();
      return { bots: await Promise.all(kept), deaths };
    },
  };
}

/** The name of each job scheduler, and when it is next (ms). */
async function schedulersOf({ redis, namespace }: Stage): Promise<Map<string, number>> {
  const all = await redis.zrange(`{${namespace}}:schedules:repeat`, 0, "-1", "WITHSCORES");
  return new Map(
    all.flatMap((name, n) => (n % 2 === 0 ? [[name, Number(all[n + 1])] as const] : [])),
  );
}

/** Digests whose post, whose maker, or whose schedule comes to grief. */
export const digestCrashRows: Row[] = [
  {
    id: "G6",
    fault: "the whole queue `schedules` is removed by hand right before a digest is due, twice",
    must: "its job schedulers come back, and each digest is posted once",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onDigestStage(seed, [{ channel: status, at: "09:00" }], async (stage) => {
        const due = today(nine);
        await knowSchedules(stage, due - hour, 1);
        const bots = [await workerAt(stage, due - minute), await workerAt(stage, due - minute)];
        const names = async () => [...(await schedulersOf(stage)).keys()].toSorted().join("; ");
        const digest = async () =>
          [...(await schedulersOf(stage))].find(([name]) => name.startsWith("digest "))?.[1];
        const before = await looking(
          async () => ((await digest()) === undefined ? undefined : names()),
          15_000,
          async () => `there are only ${await names()}`,
        );
        const slots = [due, due + day].map((at) => slotName(status, at));
        for (const [n, slot] of slots.entries()) {
          const keys = await stage.redis.keys(`{${stage.namespace}}:schedules:*`);
          await stage.redis.del(...keys);
          stage.faults += 1;
          for (const bot of bots) await setTo(bot, due + n * day);
          await digestOf(stage, slot);
        }
        const after = await looking(
          async () => ((await names()) === before ? before : undefined),
          15_000,
          names,
        ).catch(names);
        const next = await digest();
        return judged(await stage.check(), [
          await toldOnce(stage, slots),
          [`all are back: ${after}, before ${before}`, after === before],
          [`the next digest is on the next day (${next})`, next === due + 2 * day],
        ]);
      }),
  },
  {
    id: "G4",
    fault: "Slack's answer to the digest is lost; or Slack hangs, and the worker is killed",
    must: "each digest is posted once",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onDigestStage(seed, [{ channel: status, at: "09:00" }], async (stage) => {
        const due = today(nine);
        const storm = (kind: "lost-after" | "hang") =>
          stage.slack.question("addWeather", {
            method: "chat.postMessage",
            kind,
            ...(kind === "hang" ? { applied: true } : {}),
            times: 1,
            where: { channel: status },
          });
        // Nobody else delivers: who posts is who dies
        for (const gateway of stage.gateways()) await gateway.stop();
        await knowSchedules(stage, due - hour, 1);
        await storm("lost-after");
        stage.faults += 1;
        const posting = await workerAt(stage, due - 200);
        await digestOf(stage, slotName(status, due));
        await allSaid(stage);
        const first = (await digestsIn(stage)).length;
        await storm("hang");
        stage.faults += 1;
        await setTo(posting, due + day);
        await digestOf(stage, slotName(status, due + day));
        await posting.kill();
        stage.faults += 1;
        await workerAt(stage, due + day + minute);
        const looksUp = async () =>
          (await stage.slack.calls("conversations.history")).length +
          (await stage.slack.calls("conversations.replies")).length;
        const once = await toldOnce(stage, [slotName(status, due), slotName(status, due + day)]);
        const lookUps = await looksUp();
        return judged(await stage.check(), [
          [`one after the lost answer (${first})`, first === 1],
          once,
          [`looked for before it is posted again (${lookUps})`, lookUps >= 2],
        ]);
      }),
  },
  {
    id: "P19",
    fault: "a digest kills every worker that makes it",
    must: "it is given up after three starts, with an alarm; everything else goes on",
    unknown: "no trace",
    run: ({ seed }) =>
      onDigestStage(
        seed,
        [
          { channel: status, at: "09:00" },
          { channel: ops, at: "09:00" },
        ],
        async (stage) => {
          const due = today(nine);
          const poison = slotName(status, due);
          const take = fresh(stage);
          await knowSchedules(stage, due - hour, 2);
          const supervisor = superviseDying(stage, poison, due, () => askEach(stage, take));
          const ended = await slotEnded(stage, poison);
          await digestOf(stage, slotName(ops, due));
          const alarm = await looking(
            async () =>
              (await stage.slack.messages()).find(({ text }) => text.includes("could not be made")),
            15_000,
            async () => "nobody is told",
          );
          const { bots, deaths } = await supervisor.end();
          for (const bot of bots) await setTo(bot, due + day);
          const slots = [slotName(ops, due), slotName(ops, due + day), slotName(status, due + day)];
          for (const slot of slots) await digestOf(stage, slot);
          const journal = await stage.quiet(45_000);
          return judged(await stage.check(), [
            [`three starts (${deaths})`, deaths === 3],
            [`given up (${ended})`, ended === "failed"],
            [`an alarm in the alerts channel: ${alarm.text}`, alarm.channelId === "C03AUDIT"],
            await toldOnce(stage, slots),
            [`other jobs went on (${journal.length})`, journal.length >= 9],
          ]);
        },
      ),
  },
];
