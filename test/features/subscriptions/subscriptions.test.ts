import { Trail } from "../../../src/audit/trail.ts";
import { sentFor } from "../../support/sent-for.ts";
import { describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { requestable } from "../../../src/registry/define.ts";
import { createAlarms } from "../../../src/monitor/alarms.ts";
import { renderFeed } from "../../../src/features/subscriptions/render-feed.ts";
import { createStatusRecords } from "../../../src/monitor/status-records.ts";
import { createSubscriptions } from "../../../src/features/subscriptions/subscriptions.ts";
import type { KnownVm } from "../../../src/fleet/inventory/inventory.ts";
import { runProbe } from "../../../src/monitor/monitor.ts";
import { statusProbe } from "../../../src/monitor/status-probe.ts";
import { shownText } from "../../commands/shown-text.ts";
import { testRedis } from "../../support/with-redis.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { twoTeams } from "../../core/permit/two-teams.ts";
import type { Topic } from "../../../src/core/events/event.ts";
import type { News } from "../../../src/monitor/news.ts";

const ops = "C01OPS";
const vendor = "C07VENDOR";
const any = "C09ANY";

async function startFollowing() {
  const redis = await testRedis();
  const told: string[] = [];
  const seen = new Set<string>();
  const subscriptions = createSubscriptions({
    ...redis,
    config: { policy: twoTeams },
    begin: async () => undefined,
    async post(channelId, lines) {
      for (const { key, text } of lines)
        if (!seen.has(`${channelId} ${key}`)) {
          seen.add(`${channelId} ${key}`);
          told.push(`${channelId}: ${text}`);
        }
    },
  });
  const subscribe = (channelId: string, glob: string, events: readonly Topic[]) =>
    subscriptions.set({ channelId, glob, events, by: "U0PAY", at: Date.now() });
  const announced: { channelId: string; text: string }[] = [];
  const alarms = createAlarms({
    config: { policy: twoTeams },
    announce: async ({ channelId, message }) =>
      void announced.push({ channelId, text: message.text }),
  });
  return {
    ...redis,
    told,
    announced,
    alarms,
    subscriptions,
    subscribe,
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

const news = (topic: Topic, vm: KnownVm, over: Partial<News> = {}): News => ({
  topic,
  key: `${topic}-${vm.id}`,
  about: [{ kind: "vm", ...vm }],
  line: (about) => ({ text: about.map(({ name }) => name).join(" ") }),
  ...over,
});

const pay = knownVm("web-1", "ERROR", "payments");
const sea = knownVm("web-1", "ERROR", "search");
const shop = knownVm("web-1", "ERROR", "shop");

describe("a subscription", () => {
  it("covers its events and globs, within what the channel may see", async () => {
    await using here = await startFollowing();
    await here.subscribe(ops, "payments*", ["trouble"]);
    await here.subscribe(ops, "search*", ["trouble", "drift", "changes"]);
    await here.subscribe(vendor, "*", ["trouble", "drift", "changes"]);
    await here.subscribe(any, "*", ["drift"]);
    const all = [pay, sea, shop].flatMap((vm) =>
      (["trouble", "drift", "changes"] as const).map((event) => ({
        ...news(event, vm),
        line: () => ({ text: `${event} of ${vm.projectName}` }),
      })),
    );
    await here.subscriptions.follow(all);
    expect(here.told.toSorted()).toEqual([
      `${ops}: trouble of payments`,
      `${vendor}: changes of search`,
      `${vendor}: drift of search`,
      `${vendor}: trouble of search`,
      `${any}: drift of shop`,
    ]);
  });

  it("doesn't repeat what the channel knows, nor tell of a project with another team's name", async () => {
    await using here = await startFollowing();
    await here.subscribe(ops, "web-*", ["changes"]);
    await here.subscriptions.follow([
      news("changes", pay, { saidIn: [undefined, ops] }),
      news("changes", pay, {
        key: "renamed",
        about: [{ kind: "vm", ...pay, projectNameNow: "search-2" }],
      }),
    ]);
    expect(here.told).toEqual([]);
  });

  it("names only those of many VMs that it covers", async () => {
    await using here = await startFollowing();
    await here.subscribe(ops, "db-*", ["drift"]);
    const db = knownVm("db-1", "RUNNING", "payments");
    const about = [pay, db, sea].map((vm) => ({ kind: "vm" as const, ...vm }));
    await here.subscriptions.follow([news("drift", pay, { about })]);
    expect(here.told).toEqual([`${ops}: db-1`]);
  });

  it("is replaced when it is set again, and ends when it is removed", async () => {
    await using here = await startFollowing();
    await here.subscribe(ops, "web-*", ["changes"]);
    await here.subscribe(ops, "web-*", ["trouble", "drift"]);
    expect(await here.subscriptions.of(ops)).toMatchObject([{ events: ["trouble", "drift"] }]);
    expect(await here.subscriptions.of(any)).toEqual([]);
    await here.subscriptions.remove({ channelId: ops, glob: "web-*" });
    expect(await here.subscriptions.all()).toEqual([]);
  });
});

describe("VMs that go to ERROR and come out of it", () => {
  it("are alarms to their team, and told once in subscribed channels, though a process dies", async () => {
    await using here = await startFollowing();
    await here.subscribe(any, "shop", ["trouble"]);
    await here.subscribe(ops, "payments", ["trouble"]);
    const records = createStatusRecords(here.redis, here.key);
    let looks = 0;
    const lookAt = async (vms: readonly KnownVm[], dies = false) => {
      const seen = { refreshedAt: Date.now(), version: ++looks, stale: false };
      const one = () =>
        runProbe(
          statusProbe({
            redis: here.redis,
            key: here.key,
            records: dies
              ? { ...records, writeRecords: () => Promise.reject(new Error("killed")) }
              : records,
            trail: new Trail(here.redis, here.key),
            alarms: here.alarms,
            follow: here.subscriptions.follow,
            store: sentFor((id) =>
              id === "vm-asked" ? { command: "vm restart", state: "accepted" } : undefined,
            ),
            commands: requestable(commands),
            compute: { vms: { get: async () => Promise.reject(new Error("nothing is read")) } },
            inventory: {
              vms: async () => vms,
              state: async () => ({ ...seen, vms: 0, projects: 0, unread: [] }),
            },
            readEveryMs: 60_000,
            now: Date.now,
          }),
        );
      await Promise.allSettled([one(), one()]);
    };
    const all = (status: string) => [
      { ...pay, status },
      { ...sea, id: "vm-sea", status },
      { ...shop, id: "vm-shop", status },
      { ...knownVm("asked", status, "shop"), id: "vm-asked" },
    ];
    await lookAt(all("RUNNING"));
    await lookAt(all("ERROR"), true);
    await lookAt(all("ERROR"));
    // The VM's team reads the alarm, so its subscription doesn't repeat it. A status that a request
    // caused is no alarm.
    const perTeam = Map.groupBy(here.announced, ({ channelId }) => channelId);
    expect([...perTeam.keys()].toSorted()).toEqual([ops, "C02STATUS", vendor]);
    for (const [channelId, said] of perTeam)
      expect(new Set(said.map(({ text }) => text)).size, channelId).toBe(1);
    const inError = here.told.map((text) => text.replace(/.*?: /, "").slice(0, 40));
    expect(inError.toSorted()).toEqual([
      "🔴 *asked* in shop went to ERROR, was RU",
      "🔴 *web-1* in shop went to ERROR, was RU",
    ]);
    await lookAt(all("RUNNING"));
    expect(here.told.slice(2).toSorted()).toEqual([
      `${ops}: 🟢 *web-1* in payments is no longer in ERROR: it is RUNNING.`,
      `${any}: 🟢 *asked* in shop is no longer in ERROR: it is RUNNING.`,
      `${any}: 🟢 *web-1* in shop is no longer in ERROR: it is RUNNING.`,
    ]);
  });
});

describe("the message for subscribers", () => {
  it("is one line, or the number of lines with the first of them", () => {
    const one = renderFeed([{ text: "🔴 *web-1* in shop went to ERROR." }]);
    expect(one.text).toBe("🔴 web-1 in shop went to ERROR.");
    expect(shownText(one)).toContain("/gatehouse subscribe");
    const many = renderFeed(Array.from({ length: 20 }, (_, n) => ({ text: `line ${n}` })));
    expect(many.text).toBe("20 events this channel is subscribed to: line 0");
    expect(shownText(many)).toMatch(/line 14[^]*… and 5 more\./);
    expect(many.blocks.length).toBeLessThan(50);
  });
});
