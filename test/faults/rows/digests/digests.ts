import {
  day,
  digestOf,
  digestPolicy,
  onDigestStage,
  haveLooked,
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
import { digestCrashRows } from "./crashes.ts";
import { vendor } from "../vendor-channel.ts";
import { summerTimeRows } from "./summer-time.ts";
import { looking } from "../../stage/looking.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";

const nine = 9 * hour;
const weekdayOf = (at: number) =>
  new Date(at).toLocaleDateString("en", { weekday: "short", timeZone: "UTC" }).toLowerCase();

/** BullMQ's job schedulers of digests: all processes ask for the same. */
async function schedulersOfDigests(stage: Stage): Promise<string[]> {
  const names = await stage.redis.zrange(`{${stage.namespace}}:schedules:repeat`, 0, "-1");
  return names.filter((name) => name.startsWith("digest "));
}

/** Resolves when the inventory names exactly these projects as not read (`failed`: none could be). */
async function unreadNow(stage: Stage, wanted: { names?: string[]; failed?: boolean }) {
  const key = `{${stage.namespace}}:inventory:head`;
  await looking(
    async () => {
      const { unread = "[]", failed = "0" } = await stage.redis.hgetall(key);
      if (wanted.failed) return failed === "1" ? true : undefined;
      return JSON.stringify(JSON.parse(unread)) === JSON.stringify(wanted.names) ? true : undefined;
    },
    30_000,
    async () => `the inventory says ${JSON.stringify(await stage.redis.hgetall(key))}`,
  );
}

/** Steps the clock to `due`, with everything read a moment before: what is old by the clock would be called old. */
async function readSince(stage: Stage, bot: Bot, due: number): Promise<void> {
  const shortly = due - 10_000;
  await setTo(bot, shortly);
  const key = `{${stage.namespace}}:inventory:head`;
  await looking(
    async () => (Number(await stage.redis.hget(key, "refreshedAt")) >= shortly ? true : undefined),
    20_000,
    async () => "the inventory is not read anew",
  );
  await setTo(bot, due);
}

export const digestRows: Row[] = [
  {
    id: "G1",
    fault: "three workers restarted on ten days in a row; two digests a day",
    must: "each digest is posted once and has one schedule",
    unknown: "no trace",
    run: ({ seed }) =>
      onDigestStage(
        seed,
        [
          { channel: status, at: "09:00" },
          { channel: ops, at: "09:00" },
        ],
        async (stage) => {
          const take = fresh(stage);
          const first = today(nine);
          await knowSchedules(stage, first - hour, 2);
          const slots: string[] = [];
          let starts = 1;
          for (let n = 0; n < 10; n++) {
            const at = first + n * day;
            const bots = await Promise.all([1, 2, 3].map((_, k) => loadedWorker(stage, `g1-${k}`)));
            await Promise.all(bots.map((bot) => startAt(bot, at - 500)));
            starts += bots.length;
            if (n % 4 === 1) await askEach(stage, take, ["vm restart"]);
            const names = [slotName(status, at), slotName(ops, at)];
            slots.push(...names);
            for (const name of names) await slotEnded(stage, name);
            // Whether Slack has them yet or not
            await Promise.all(bots.map((bot) => bot.kill()));
            stage.faults += bots.length;
          }
          await workerAt(stage, first + 9 * day + hour);
          const known = await stage.redis.hgetall(`{${stage.namespace}}:digest-known`);
          const schedulers = await schedulersOfDigests(stage);
          await stage.quiet(45_000);
          return judged(
            await stage.check(),
            [
              await toldOnce(stage, slots),
              [`one schedule per digest: ${Object.keys(known).join("; ")}`, size(known) === 2],
              [`and one scheduler: ${schedulers.join("; ")}`, schedulers.length === 2],
            ],
            { notes: [`${starts} starts, ${slots.length} slots`] },
          );
        },
      ),
  },
  {
    id: "G2",
    fault: "everything is down at the digest's time, and up hours or a day later",
    must: "one digest each time, saying how late it is",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) => {
      const due = today(nine);
      const weekly = due + day;
      const policy = digestPolicy([
        { channel: status, at: "09:00" },
        { channel: vendor, at: "09:00", days: weekdayOf(weekly) },
      ]);
      return onStage({ seed, workers: 0, oneClock: true, policy }, async (stage) => {
        await knowSchedules(stage, due - hour, 2);
        const late = [slotName(status, due), slotName(status, due + 2 * day)] as const;
        const words: string[] = [];
        // Three hours after the first; then all is down for two days, and what came weekly is 25 h old
        for (const [slot, up] of [
          [late[0], due + 3 * hour],
          [late[1], due + 2 * day + hour],
        ] as const) {
          const bots = await Promise.all([loadedWorker(stage), loadedWorker(stage)]);
          await Promise.all(bots.map((bot) => startAt(bot, up)));
          words.push((await digestOf(stage, slot)).words);
          await haveLooked(stage);
          await Promise.all(bots.map((bot) => setTo(bot, up + 30 * minute)));
          await haveLooked(stage);
          await Promise.all(bots.map((bot) => bot.kill()));
          stage.faults += 2;
        }
        const [three = "", one = ""] = words;
        return judged(await stage.check(), [
          // Nothing of the day in between, nothing of the weekly one
          await toldOnce(stage, late),
          [`marked late by 3 h: ${lateIn(three)}`, lateIn(three).startsWith("Late by 3 h")],
          [`marked late by 1 h: ${lateIn(one)}`, lateIn(one).startsWith("Late by 1 h")],
        ]);
      });
    },
  },
  {
    id: "G3",
    fault: "two of three projects can't be read; then the whole service",
    must: "the digest names what couldn't be read and invents no number",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage(
        {
          seed,
          workers: 0,
          vms: 60,
          oneClock: true,
          policy: digestPolicy([{ channel: status, at: "09:00" }]),
        },
        async (stage) => {
          const due = today(nine);
          const down = async (path: string) => {
            await stage.service.weather({ match: `GET ${path}`, status: 503 });
            stage.faults += 1;
          };
          // One was never read, the other is known from before
          await down("/v1/projects/prj-0001/vms");
          for (const gateway of stage.gateways()) await gateway.stop();
          await stage.redis.del(...(await stage.redis.keys(`{${stage.namespace}}:inventory:*`)));
          const bot = await workerAt(stage, due - hour);
          await unreadNow(stage, { names: ["team-0001"] });
          await down("/v1/projects/prj-0002/vms");
          await unreadNow(stage, { names: ["team-0001", "team-0002"] });
          await readSince(stage, bot, due);
          const half = (await digestOf(stage, slotName(status, due))).words;
          await down("/v1/projects");
          await unreadNow(stage, { failed: true });
          await setTo(bot, due + day);
          const none = (await digestOf(stage, slotName(status, due + day))).words;
          return judged(await stage.check(), [
            await toldOnce(stage, [slotName(status, due), slotName(status, due + day)]),
            [
              `names both, and no third: ${half}`,
              half.includes("*2 projects could not be read:* `team-0001`, `team-0002`. Their VMs"),
            ],
            [
              `counts what was read, and says how many are not known: ${half}`,
              half.includes("20 VMs: 20 RUNNING, and 20 whose state is not known."),
            ],
            [`says that the service does not answer: ${none}`, none.includes("does not answer")],
            [
              `no invented zeros: ${half} ${none}`,
              !/\b0 (VM|RUN|STO|ERR)|no VMs/.test(half + none),
            ],
          ]);
        },
      ),
  },
  ...digestCrashRows,
  ...summerTimeRows,
];

const size = (record: object) => Object.keys(record).length;

const lateIn = (words: string) => /Late by [^.:]*/.exec(words)?.[0] ?? "not marked late";
