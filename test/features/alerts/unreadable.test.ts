import { expect, it } from "vitest";
import { type AlertRecord, alertRecord } from "../../../src/features/alerts/alert-record.ts";
import { createAlerts } from "../../../src/features/alerts/alerts.ts";
import type { Alert } from "../../../src/features/alerts/read-alerts.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const detail = {
  name: "Full",
  summary: "95%",
  severity: "critical",
  description: "the disk",
  runbook: "https://example.com/a",
  graph: "https://example.com/b",
  vm: "db-1",
  since: 1,
};
const unreadable = { count: 1, open: 1, why: "no labels" };
const delivery = {
  groupKey: "g",
  alerts: [{ ...detail, key: "k", at: 1, endedAt: 2 }],
  omitted: 0,
  unreadable,
  isWhole: true,
  sender: "am-0",
  sentAt: 1,
  arrivedAt: 2,
};
const record: AlertRecord = {
  source: "prometheus",
  channelId: "C01OPS",
  group: {
    alerts: {
      k: {
        at: 1,
        endedAt: 2,
        isEndUntold: true,
        overtookAt: 1,
        isMissing: true,
        listedAt: 2,
        detail,
      },
    },
    omitted: 1,
    unreadable,
    told: { heardAt: 1, sentAt: 1, states: [["h", 1]], senders: { "am-0": "h" }, pauseMs: 1 },
    held: [{ from: 1, delivery }],
  },
  vms: [{ label: "db-1", id: "vm-1", project: { id: "p-1", name: "payments" } }],
  events: [{ is: "fired", vms: ["db-1"] }],
  told: 0,
  firings: 1,
  urgentAt: 1,
  requests: ["r-1"],
  silence: "quiet",
};

it("a group of alerts is read whole or not at all", () => {
  expectOnlyWhole(alertRecord, record);
});

it("a delivery that says nothing new writes nothing, in whatever order its members are stored", async () => {
  await using here = await testRedis();
  const alerts = createAlerts(here.redis, here.key);
  const calm = { vmOf: async () => undefined, channelOf: async () => "C01OPS" };
  const { key, at, endedAt, ...texts } = { ...detail, key: "k", at: 1, endedAt: 2 };
  const tells = (alert: Alert) => ({ groupKey: "g", alerts: [alert], omitted: 0 });
  await alerts.take("s", tells({ key, at, ...texts }), calm);
  const id = (await alerts.take("s", tells({ endedAt, ...texts, at, key }), calm))?.id ?? "";
  const before = await alerts.get(id);
  expect(before).toMatchObject({ state: "ended", revision: 2 });
  for (const alert of [
    { endedAt, ...texts, at, key },
    { ...texts, key, at, endedAt },
  ])
    expect(await alerts.take("s", tells(alert), calm)).toEqual({ id, isChanged: false });
  expect((await alerts.get(id))?.revision).toBe(2);
});

it("a group that can't be read hides no other, and the next delivery begins it anew", async () => {
  await using here = await testRedis();
  const alerts = createAlerts(here.redis, here.key);
  const calm = { vmOf: async () => undefined, channelOf: async () => "C01OPS" };
  const tells = (groupKey: string) => {
    const alert = { key: "k", name: "Full", vm: "db-1", summary: "", severity: "" };
    return { groupKey, alerts: [{ ...alert, since: 1, at: 1 }], omitted: 0 };
  };
  await alerts.take("s", tells("other"), calm);
  const id = (await alerts.take("s", tells("broken"), calm))?.id ?? "";
  for (const text of [...garbage, '{"group":{}}']) {
    await here.redis.hset(here.key("alert", id), { alert: text, "said:card": "1.2" });
    expect(
      (await alerts.firing()).map(({ key }) => key),
      text,
    ).toHaveLength(1);
    expect(await alerts.get(id), text).toBeUndefined();
    expect(await alerts.take("s", tells("broken"), calm), text).toEqual({ id, isChanged: true });
    expect(await alerts.firing(), text).toHaveLength(2);
    expect((await alerts.get(id))?.delivered.marks["card"], text).toBe("1.2");
  }
});
