import { createPostDue } from "../../src/digests/post-due.ts";
import { createSchedules } from "../../src/digests/schedules.ts";
import { createSlotRecords, localWords } from "../../src/digests/slots.ts";
import { silentLog } from "../../src/log/log.ts";
import { sentence } from "../../src/messages/message.ts";
import { md } from "../../src/messages/text.ts";
import type { DigestRule } from "../../src/config/policy-file.ts";
import { createKeys, connectRedis, type RedisClient } from "../../src/redis/redis.ts";
import type { Tour } from "./tour.ts";

const zones = ["Europe/Paris", "America/New_York"] as const;
const everyDay = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

/**
 * Three days each, the clocks change on the second. It is due in the hour that is left out in spring and comes twice in
 * autumn: in New York that is another one.
 */
const changes = [
  { what: "In New York the clocks go forward, from 2 to 3", from: "2027-03-13", at: "02:30" },
  { what: "In Paris the clocks go forward, from 2 to 3", from: "2027-03-27", at: "02:30" },
  { what: "In Paris the clocks go back, from 3 to 2", from: "2027-10-30", at: "02:30" },
  { what: "In New York the clocks go back, from 2 to 1", from: "2027-11-06", at: "01:30" },
] as const;

const stepMs = 30 * 60_000;
const dayMs = 24 * 3600_000;

interface Posted {
  zone: string;
  date: string;
  words: string;
}

/** Lets three days go by for two processes that look for what is due, as they do every few seconds. */
async function letDaysPass(redis: RedisClient, from: string, at: string): Promise<Posted[]> {
  const key = createKeys(`tour-${from}`);
  const rules = zones.map((timezone): DigestRule => ({
    channel: timezone === "Europe/Paris" ? "C01OPS" : "C02STATUS",
    at,
    timezone,
    days: everyDay,
  }));
  const began = Date.parse(`${from}T00:00Z`);
  let now = began;
  const posted: Posted[] = [];
  const startProcess = () =>
    createPostDue({
      digests: {
        schedules: createSchedules(redis, key, () => rules),
        slots: createSlotRecords(redis, key, 60_000),
        build: async () => ({ message: sentence(md`The digest of that day.`) }),
      },
      async announce({ channelId, id }) {
        const rule = rules.find(({ channel }) => channel === channelId);
        const zone = rule?.timezone ?? "UTC";
        const date = /\d{4}-\d\d-\d\d/.exec(id)?.[0] ?? "";
        posted.push({ zone, date, words: localWords(now, zone) });
      },
      alarm: async () => undefined,
      now: () => now,
      log: silentLog(),
    });
  const processes = [startProcess(), startProcess()];
  for (; now < began + 3 * dayMs; now += stepMs)
    await Promise.all(processes.map((postDue) => postDue()));
  return posted;
}

/** This date and the two after it. */
const threeDates = (from: string) =>
  [0, 1, 2].map((days) => new Date(Date.parse(from) + days * dayMs).toISOString().slice(0, 10));

/** A digest of the night, and one digest a day whatever the clocks do. */
export const digestSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "It is morning. A digest reports the night in the channel: every day at a set time, or now.",
    );
    await tour.types(olivia, "ops", "/gatehouse digest on 09:00 Europe/Paris mon-fri");
    await tour.sees(olivia, "ops", /at 09:00 Europe\/Paris, mon-fri\. Next:/);
    await tour.types(olivia, "ops", "/gatehouse digest now");
    const digest = await tour.sees(olivia, "ops", /Digest[\s\S]*web-2/);
    tour.holds("it mentions nobody", !JSON.stringify(digest).includes("<@"));
  },
  async (tour) => {
    tour.scene(
      "Digests at night in two time zones, while clocks change. Two processes post what is due; three days pass at once.",
    );
    const redis = await connectRedis(tour.world.redisUrl, "commands", silentLog());
    try {
      for (const { what, from, at } of changes) {
        const posted = await letDaysPass(redis, from, at);
        tour.shows(`${what}:`);
        for (const zone of zones) {
          const here = posted.filter((one) => one.zone === zone);
          tour.shows(`  ${zone.padEnd(17)} ${here.map(({ words }) => words).join(" │ ")}`);
          const dates = here.map(({ date }) => date).join();
          if (dates !== threeDates(from).join())
            tour.holds(`one a day in ${zone} from ${from}: ${dates}`, false);
        }
      }
      tour.holds("each day had exactly one, in both zones", true);
    } finally {
      redis.disconnect();
    }
  },
];
