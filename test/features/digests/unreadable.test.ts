import { expect, it } from "vitest";
import { createSchedules, scheduleRecord } from "../../../src/features/digests/schedules.ts";
import { policyOf } from "../../core/permit/sample.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const rule = {
  channel: "C02STATUS",
  at: "08:30",
  timezone: "Europe/Paris",
  days: ["mon", "tue"],
  targets: ["web-*"],
} as const;

it("the schedule of a digest is read whole or not at all", () => {
  expectOnlyWhole(scheduleRecord, rule);
  for (const broken of [
    { ...rule, timezone: "Mars/Olympus" },
    { ...rule, at: "25:00" },
  ])
    expect(scheduleRecord.parse(JSON.stringify(broken), "key")).toBeUndefined();
});

it("a schedule that can't be read hides no other, and replaces none of gatehouse.yml", async () => {
  await using here = await testRedis();
  const policy = policyOf(`
access: { view: ["*"], operate: [], approve: [], administer: [] }
digests:
  - { channel: C01OPS, at: "09:00" }
  - { channel: C03QUIET, at: "09:00" }
`);
  const schedules = createSchedules(here.redis, here.key, { policy });
  await schedules.set(rule);
  await schedules.clear("C03QUIET");
  for (const text of garbage) {
    await here.redis.hset(here.key("digest-schedules"), "C01OPS", text);
    const times = (await schedules.all()).map(({ channel, at }) => `${channel} ${at}`);
    expect(times, text).toEqual(["C01OPS 09:00", "C02STATUS 08:30"]);
  }
});
