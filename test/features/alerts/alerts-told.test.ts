import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { createAlerts, firingIn } from "../../../src/features/alerts/alerts.ts";
import { createQueues } from "../../../src/queue/queues.ts";
import { auditOf } from "../../core/asking.ts";
import { buttonOn, pressPayload, sendSigned } from "../../stories/forge.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";
import { pendingOf } from "../../support/pending.ts";
import { policyWith, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { testRedis } from "../../support/with-redis.ts";
import {
  alertmanagerBody,
  bearer,
  type Fired,
  hmac,
  minute,
  pagerdutyBody,
  channelNamed,
  send,
  sources,
  startAlertWorld,
  fire,
  inChannel,
  isQuiet,
} from "./sending.ts";
import { until } from "../../support/until.ts";

const inThread = (world: TestWorld, { ts }: SeenMessage, channel = "ops") =>
  world.ada
    .seesChannel(channel)
    .messages.filter((one) => one.threadTs === ts && one.ts !== ts)
    .map(wordsOf);

const teams = `${testPolicy}${sources}teams:
  payments: { projects: [payments], operate: [U0OLIVIA], channel: C02STATUS }
  lab: { projects: [ml], operate: [U0AMIR], channel: C05LEADS }
`;

describe.concurrent("a delivery", () => {
  it("that is repeated or comes from a second peer is one message and one record", async () => {
    await using world = await startAlertWorld();
    const body = alertmanagerBody([{}]);
    const all = await Promise.all(Array.from({ length: 6 }, () => send(world, "prometheus", body)));
    expect(all.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202, 202]);
    expect(all.filter(({ body: { changed } }) => changed === true)).toHaveLength(1);
    await hears(world.olivia, "ops", /HighCpu on web-2/);
    await isQuiet(world);
    expect(inChannel(world)).toHaveLength(1);
    const trail = await auditOf(world.client, world.key("audit"));
    expect(trail.filter(({ what }) => what === "alert")).toMatchObject([
      { source: "prometheus", firing: 1 },
    ]);
    expect(JSON.stringify(trail)).not.toContain("CPU above");
  });

  it("that tells the end before the beginning shows nothing firing", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{ status: "resolved" }]);
    await fire(world, [{}]);
    await fire(world, [{ vm: "db-1" }], { groupKey: "other" });
    await hears(world.olivia, "ops", /HighCpu on db-1/);
    await isQuiet(world);
    expect(inChannel(world)).toHaveLength(1);
  });

  it("of PagerDuty that is repeated is not a new message", async () => {
    await using world = await startAlertWorld();
    const post = (body: string) =>
      send(world, "pagerduty", body, {
        "x-pagerduty-signature": `v1=${hmac("test-secret-new", body)}`,
      });
    const fired = JSON.stringify(pagerdutyBody());
    const over = JSON.stringify(pagerdutyBody("resolved", minute(7)));
    for (const body of [fired, over, fired, over]) expect((await post(body)).status).toBe(202);
    const card = await hears(
      world.olivia,
      "ops",
      /^✅ A little bump in the road on web-2 ended after 8 min\.\s[^]*Ended/,
    );
    await isQuiet(world);
    expect(inChannel(world).map(({ ts }) => ts)).toEqual([card.ts]);
  });

  it("with mentions, links, and marks in it is shown as text, and mentions nobody", async () => {
    await using world = await startAlertWorld();
    const evil =
      "<!channel> <@U0OLIVIA> <https://evil.example|click> @here *b* :fire: \u202edlrow\u0000";
    const many = Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`l${n}`, "x"]));
    await fire(world, [
      {
        name: evil,
        vm: `${evil}${"z".repeat(60_000)}`,
        summary: evil,
        severity: evil,
        labels: many,
      },
    ]);
    const card = await hears(world.olivia, "ops", /evil\.example/);
    const raw = JSON.stringify([card.text, card.blocks]);
    expect(raw).not.toMatch(/<!channel|<@U0|<https|\u202e|\\u0000|[^\u2060]@here|"(?:l1|z{300})/);
    expect(raw.length).toBeLessThan(5_000);
    await isQuiet(world);
    expect(world.olivia.mentions()).toEqual([]);
    expect(raw).not.toContain("Restart");
    expect(world.lines.join("")).not.toContain("evil.example");
  });
});

describe.concurrent("the message of a group", () => {
  it("is edited as VMs join it and end, and its thread says so", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await fire(world, [{}, { vm: "db-1" }]);
    await hears(world.olivia, "ops", /🔥 HighCpu fires on db-1 too\./);
    const both = await hears(world.olivia, "ops", /HighCpu on db-1, web-2[^]*2 alerts firing/);
    expect(both.ts).toBe(card.ts);
    expect(wordsOf(both)).toMatch(
      /db-1 in payments is RUNNING as of[^]*web-2 in payments is RUNNING as of/,
    );
    await fire(world, [{ status: "resolved" }, { vm: "db-1" }]);
    await hears(world.olivia, "ops", /^🔥 HighCpu on db-1 /);
    await fire(world, [{ status: "resolved" }, { vm: "db-1", status: "resolved" }]);
    await hears(world.olivia, "ops", /✅ HighCpu on db-1, web-2 ended/);
    await isQuiet(world);
    expect(inThread(world, card)).toEqual([
      "🔥 HighCpu fires on db-1 too.",
      "✅ HighCpu on db-1, web-2 ended after 9 min.",
    ]);
    await fire(world, [{ startsAt: minute(15) }]);
    await hears(world.olivia, "ops", /🔥 Fires again: HighCpu on web-2\./);
    await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(inChannel(world)).toHaveLength(1);
  });

  it("has a menu for each of several VMs, whose Restart… asks first", async () => {
    await using world = await startAlertWorld();
    await fire(world, [
      {},
      { vm: "db-1" },
      { vm: "10.0.0.7:9100", label: "instance" },
      { vm: "web-1" },
    ]);
    const card = await hears(world.olivia, "ops", /HighCpu on/);
    expect(wordsOf(card)).toMatch(/Also on (10\.0\.0\.7:9100, web-1|web-1, 10\.0\.0\.7:9100)\./);
    const values = [...JSON.stringify(card.blocks).matchAll(/"value":"((?:[^"\\]|\\.)*)"/g)];
    const restart = values.map(([, one = ""]) => one).find((one) => one.includes("vm.restart"));
    const value = (restart ?? "").replaceAll("\\", "");
    expect(value.length).toBeLessThanOrEqual(75);
    await world.olivia.chooses("menu", value, { in: card.ts });
    await hears(world.olivia, "ops", /Restart (web-2|db-1)\? What runs there is interrupted/);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.presses("Restart", { channel: "ops" });
    const { record } = await world.ended("vm restart");
    expect(record.threadTs).toBe(card.ts);
  });

  it("says the present state of every VM with controls, whatever the inventory read last", async () => {
    await using world = await startAlertWorld();
    const vms = ["web-1", "web-2", "db-1", "worker-1", "train-7", "gpu-1"];
    world.compute.edit.setStatus({ vm: "gpu-1", status: "STOPPED" });
    world.compute.edit.setStatus({ vm: "web-2", status: "STOPPED" });
    await fire(
      world,
      vms.map((vm, n) => ({ vm, startsAt: minute(n) })),
    );
    await hears(
      world.olivia,
      "ops",
      /web-2 in payments is STOPPED as of[^]*gpu-1 in ml is STOPPED/,
    );
    await fire(world, [{}], { groupKey: "alone" });
    const card = await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(wordsOf(card)).toMatch(/STOPPED as of[^]*\[Show\] \[Metrics\] \[Graph\]\s+\[Start\]/);
  });

  it("opens the form of a command that has one, whose result comes into its thread", async () => {
    const offering = sources.replace("[vm.snapshot]", "[vm.resize]");
    await using world = await startAlertWorld({ policy: `${testPolicy}${offering}` });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await world.olivia.presses("Resize…", { in: card.ts });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.submits({ CPU: "4", Memory: "8" });
    const { record } = await world.ended("vm resize");
    expect([record.threadTs, record.target.id]).toEqual([card.ts, "vm-payments-web-2"]);
    await hears(world.olivia, "ops", /Resized web-2[^(]*\(olivia, [^)]*\)\. Still firing\./);
  });

  it("says who works on it, then the result, and the VM's present state", async () => {
    await using world = await startAlertWorld({ compute: { transitionMs: 3_000 } });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await world.olivia.presses("Restart…", { in: card.ts });
    const busy = await hears(world.vera, "ops", /👤 olivia is on it: Restart web-2/);
    expect(busy.ts).toBe(card.ts);
    const over = await hears(
      world.vera,
      "ops",
      /🔥[^]*\nRestarted web-2 in \d+ s \(olivia, [^)]*\)\. Still firing\./,
    );
    expect(wordsOf(over)).toMatch(/web-2 in payments is RUNNING as of[^]*\[Restart…\]/);
    expect(wordsOf(over)).not.toContain("is on it");
    const [request] = await world.store.getMany(await world.store.recentIds({}, 10));
    const trail = await auditOf(world.client, world.key("audit"));
    const cause = (trail.find(({ what }) => what === "alert") as { alert: string }).alert;
    const origin = expect.objectContaining({ kind: "alert", alert: cause }) as unknown;
    expect(request?.record.origin).toEqual(origin);
    expect(trail).toContainEqual(
      expect.objectContaining({ what: "request", origin, who: "U0OLIVIA" }),
    );
  });

  it("offers in ERROR the same commands as the VM's own card: not those that the service has refused for it", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{ vm: "train-7" }]);
    const card = await hears(world.olivia, "ops", /HighCpu on train-7[^]*\[Restart…\]/);
    world.compute.weather({ match: "POST /v1/vms/:id/restart", status: 409, times: 1 });
    await world.olivia.presses("Restart…", { in: card.ts });
    await world.ended("vm restart");
    const refused = await hears(
      world.olivia,
      "ops",
      /HighCpu on train-7[^]*The compute service refuses this while the VM is in ERROR/,
    );
    expect(refused.ts).toBe(card.ts);
    expect(wordsOf(refused)).toMatch(/\[Show\] \[Metrics\]/);
    expect(wordsOf(refused)).not.toContain("[Restart…]");
    // The menu beside another VM leaves it out too.
    await fire(world, [{ vm: "train-7" }, {}], { groupKey: "two" });
    const both = await hears(world.olivia, "ops", /HighCpu on (train-7, web-2|web-2, train-7)/);
    const [rows] = [JSON.stringify(both.blocks)];
    expect(rows.match(/"Restart \S+…"/g)).toEqual(['"Restart web-2…"']);
    // Restart is offered again once the VM has left ERROR.
    world.compute.edit.setStatus({ vm: "train-7", status: "RUNNING" });
    await fire(world, [{ vm: "train-7" }], { groupKey: "later" });
    await hears(world.olivia, "ops", /^🔥 HighCpu on train-7 [^]*RUNNING as of[^]*\[Restart…\]/);
  });

  it("doesn't offer changes that gatehouse.yml protects the VM from", async () => {
    const offering = sources.replace("[vm.snapshot]", "[vm.stop]");
    const policy = policyWith({ protect: ["web-2"] }, offering);
    await using world = await startAlertWorld({ policy });
    await fire(world, [{}]);
    const card = wordsOf(await hears(world.olivia, "ops", /HighCpu on web-2/));
    expect(card).toContain("[Restart…]");
    expect(card).not.toContain("[Stop");
    await fire(world, [{ vm: "db-1" }], { groupKey: "other" });
    await hears(world.olivia, "ops", /HighCpu on db-1[^]*\[Stop…\]/);
  });

  it("doesn't name a person who only opened the form", async () => {
    const asks = `${testPolicy}${sources.replace("[vm.snapshot]", "[vm.stop]")}confirm: ["web-*"]
`;
    await using world = await startAlertWorld({ policy: asks });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await world.olivia.presses("Restart…", { in: card.ts });
    await world.olivia.until(({ modals }) => modals.length > 0);
    await fire(world, [{}, { vm: "db-1" }]);
    const after = await hears(world.olivia, "ops", /HighCpu on db-1, web-2/);
    expect(wordsOf(after)).not.toContain("olivia");
  });

  it("offers each command once, however often it is named, and a menu of those that fit", async () => {
    const many = "[vm.restart, vm.show, vm.snapshot, vm.snapshot, vm.stop, vm.resize]";
    const policy = `${testPolicy}${sources.replace("[vm.snapshot]", many)}`;
    await using world = await startAlertWorld({ policy });
    await fire(world, [{}]);
    const one = await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(wordsOf(one)).toMatch(
      /\[Show\] \[Metrics\] \[Graph\]\s+\[Restart…\] \[Snapshot\] \[Stop…\] \[Resize…\]/,
    );
    await fire(world, [{}, { vm: "db-1" }]);
    const two = await hears(world.olivia, "ops", /^🔥 HighCpu on db-1, web-2 /);
    const menus = JSON.stringify(two.blocks).split('"overflow"').slice(1);
    const labels = menus.map((menu) =>
      [...menu.matchAll(/"plain_text","text":"([^"]+)"/g)].map(([, label]) => label),
    );
    expect(labels.map((menu) => menu.slice(0, 5))).toEqual(
      ["db-1", "web-2"].map((vm) => [
        `Show ${vm}`,
        `Metrics ${vm}`,
        `Restart ${vm}…`,
        `Snapshot ${vm}`,
        `Stop ${vm}…`,
      ]),
    );
  });

  it("shows the summary of each alert on a VM, and names only new ones in its thread", async () => {
    await using world = await startAlertWorld();
    const disks = ["/var 95% full", "/home 99% full"];
    await fire(
      world,
      disks.map((summary, n) => ({ name: `Disk${n}`, summary })),
    );
    await hears(
      world.olivia,
      "ops",
      /^🔥 Disk0, Disk1 on web-2 [^]*Disk0: \/var 95% full\s+Disk1: \/home 99% full\s+2 alerts firing/,
    );
    await fire(world, [{ name: "Hot", vm: "db-1" }]);
    await hears(world.olivia, "ops", /^🔥 Hot fires on db-1 too\.$/);
    await fire(world, [{ vm: "gone-1" }, { vm: "gone-2" }], { groupKey: "words" });
    await hears(world.olivia, "ops", /^🔥 HighCpu on gone-1, gone-2 [^]*CPU above 95% for 5 min/);
  });

  it("that flaps keeps its newest events, and each request of its buttons once", async () => {
    await using here = await testRedis();
    const alerts = createAlerts(here.redis, here.key);
    const meaning = { vmIdOf: async () => undefined, channelOf: async () => "C01OPS" };
    const told = async (at: number, endedAt?: number) => {
      const alert = { key: "k", name: "Flap", vm: "web-2", summary: "", severity: "", since: at };
      const one = { ...alert, at, ...(endedAt === undefined ? {} : { endedAt }) };
      return alerts.take("s", { groupKey: "g", alerts: [one], omitted: 0 }, meaning);
    };
    let id = "";
    for (let n = 1; n <= 18; n++) {
      id = (await told(2 * n))?.id ?? "";
      await told(2 * n + 1, 2 * n + 1);
    }
    const { events = [], told: before } = (await alerts.get(id))?.record ?? {};
    expect([events.length, before, events.at(-1)?.is]).toEqual([30, 6, "ended"]);
    const seen = async () => {
      const { revision, record } = (await alerts.get(id)) ?? {};
      return [revision, record?.requests];
    };
    const [revision] = await seen();
    for (const n of [1, 2, 3]) {
      await alerts.note(id, "r-1");
      expect(await seen()).toEqual([Number(revision) + n, ["r-1"]]);
    }
    await alerts.note("a-gone", "r-1");
    expect(await here.redis.exists(here.key("alert", "a-gone"))).toBe(0);
  });

  it("fires again with the same beginning, alone and beside an alert that never ended; a copy of that ends nothing", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{}, { vm: "db-1" }]);
    const card = await hears(world.olivia, "ops", /^🔥 HighCpu on db-1, web-2 /);
    const ended = { status: "resolved", endsAt: minute(9) } as const;
    await fire(world, [ended, { vm: "db-1" }]);
    await hears(world.olivia, "ops", /^🔥 HighCpu on db-1 ·/);
    expect((await fire(world, [{}, { vm: "db-1" }]))["changed"]).toBe(true);
    await hears(world.olivia, "ops", /^🔥 HighCpu on db-1, web-2 /);
    await fire(world, [ended, { vm: "db-1", ...ended }]);
    await hears(world.olivia, "ops", /^✅ HighCpu on db-1, web-2 /);
    await isQuiet(world);
    expect((await fire(world, [{}]))["changed"]).toBe(true);
    const again = await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(again.ts).toBe(card.ts);
    expect((await fire(world, [{}]))["changed"]).toBe(false);
    await isQuiet(world);
    expect(inThread(world, card).at(-1)).toBe("🔥 Fires again: HighCpu on web-2.");
  });

  it("isn't opened again by the late copy of a peer, which is told by its address", async () => {
    await using world = await startAlertWorld();
    const from = (peer: string) => ({ ...bearer(), "x-forwarded-for": peer });
    const post = async (tells: Fired, peer: string) =>
      (await send(world, "prometheus", alertmanagerBody([tells]), from(peer))).body["changed"];
    expect(await post({}, "10.0.0.1")).toBe(true);
    expect(await post({ status: "resolved" }, "10.0.0.1")).toBe(true);
    expect(await post({}, "10.0.0.2")).toBe(false);
    expect(await post({ status: "resolved" }, "10.0.0.2")).toBe(false);
    await hears(world.olivia, "ops", /^✅ HighCpu on web-2 /);
  });

  it("fires again when a held delivery, perhaps a late copy, counts after a minute", async () => {
    await using world = await startAlertWorld();
    const from = (peer: string) => ({ ...bearer(), "x-forwarded-for": peer });
    const post = async (tells: Fired, peer: string) =>
      (await send(world, "prometheus", alertmanagerBody([tells]), from(peer))).body["alert"];
    await post({}, "10.0.0.1");
    await post({ status: "resolved" }, "10.0.0.1");
    const id = String(await post({}, "10.0.0.2"));
    await hears(world.olivia, "ops", /^✅ HighCpu on web-2 /);
    const key = world.key("alert", id);
    const record = JSON.parse((await world.client.hget(key, "alert")) ?? "{}") as {
      group: { held: { from: number }[] };
    };
    const dueInMs =
      Number(await world.client.zscore(world.key("pending"), `alert-held ${id}`)) - Date.now();
    expect(dueInMs).toBeGreaterThan(40_000);
    expect(dueInMs).toBeLessThan(61_000);
    // Pretend that the minute is over.
    for (const held of record.group.held) held.from = Date.now() - 1;
    await world.client.hset(key, "alert", JSON.stringify(record));
    await world.client.zadd(world.key("pending"), Date.now() - 1, `alert-held ${id}`);
    await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    await hears(world.olivia, "ops", /🔥 Fires again: HighCpu on web-2\./);
    await until(() => pendingOf(world.client, world.key, "alert-held")).toBe(0);
  });

  it.each([
    [
      "cron",
      (vm: string) => ({ group: "disks", alerts: [{ name: "DiskFull", vm, startsAt: minute(0) }] }),
    ],
    // Each delivery lists only its own alert, and says that there are others.
    [
      "prometheus",
      (vm: string) => ({ ...alertmanagerBody([{ name: "DiskFull", vm }]), truncatedAlerts: 1 }),
    ],
  ] as const)(
    "takes a burst of posts from 200 machines at two gateways: %s",
    async (source, bodyOf) => {
      await using world = await startAlertWorld();
      await world.startProcess("gateway");
      const apis = world.processes.map((one) => ({ processes: [one] }));
      expect(new Set(apis.map(({ processes: [one] }) => one?.apiPort)).size).toBe(2);
      const all = await Promise.all(
        Array.from({ length: 200 }, async (_, n) => {
          const post = () => send(apis[n % 2] ?? world, source, bodyOf(`machine-${n}`));
          let answer = await post();
          // Not taken now, because Redis was too slow: senders try again.
          for (let again = 0; answer.status === 503 && again < 20; again += 1)
            answer = await post();
          return answer;
        }),
      );
      expect(new Set(all.map(({ status }) => status))).toEqual(new Set([202]));
      const [id] = new Set(all.map(({ body }) => body["alert"]));
      const alert = await createAlerts(world.client, world.key).get(String(id));
      expect(alert && firingIn(alert.record.group)).toBe(200);
      await hears(world.olivia, "ops", /200 alerts firing/);
    },
  );

  it("is refused in time when another process writes to it all the time, with all that wait behind it", async () => {
    await using here = await testRedis();
    const alerts = createAlerts(here.redis, here.key);
    const tells = (vm: string) => {
      const alert = { key: vm, name: "Full", vm, summary: "", severity: "", since: 1, at: 1 };
      return { groupKey: "g", alerts: [alert], omitted: 0 };
    };
    const calm = { vmIdOf: async () => undefined, channelOf: async () => "C01OPS" };
    const id = (await alerts.take("s", tells("first"), calm))?.id ?? "";
    const vmIdOf = async () => {
      await alerts.touch(id);
      return undefined;
    };
    const busy = { ...calm, vmIdOf };
    const began = performance.now();
    const both = ["second", "third"].map((vm) => alerts.take("s", tells(vm), busy));
    expect(await Promise.all(both)).toEqual([undefined, undefined]);
    expect(performance.now() - began).toBeLessThan(9_500);
    // No delivery loses its turn.
    expect(await alerts.take("s", tells("fourth"), calm)).toEqual({ id, isChanged: true });
    const alert = await alerts.get(id);
    expect(alert && firingIn(alert.record.group)).toBe(2);
  });

  it("fires as long as its source leaves alerts out, and says that it doesn't know their state", async () => {
    await using world = await startAlertWorld();
    const post = async (tells: readonly Fired[], truncatedAlerts: number) => {
      const body = { ...alertmanagerBody(tells), truncatedAlerts };
      expect((await send(world, "prometheus", body)).status).toBe(202);
    };
    await post([{}, { vm: "db-1" }], 3);
    await hears(
      world.olivia,
      "ops",
      /^🔥 HighCpu on db-1, web-2 [^]*2 alerts firing, since[^]*3 more not listed by prometheus/,
    );
    const over = { status: "resolved" } as const;
    await post([over, { vm: "db-1", ...over }], 3);
    const open = await hears(
      world.olivia,
      "ops",
      /^🔥 HighCpu on db-1, web-2 [^]*Those listed have ended\. 3 more not listed: prometheus doesn't say whether they fire\./,
    );
    expect(wordsOf(open)).not.toContain("Restart…");
    await post([{ vm: "gpu-1", ...over }], 0);
    await hears(world.olivia, "ops", /^✅ HighCpu on /);
  });

  it("names alerts that are no longer reported, and ends with those that a complete list still has", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{}, { vm: "db-1" }]);
    await hears(world.olivia, "ops", /^🔥 HighCpu on db-1, web-2 /);
    await fire(world, [{}]);
    await hears(
      world.olivia,
      "ops",
      /^🔥 HighCpu on web-2 [^]*No longer reported: HighCpu on db-1\./,
    );
    await fire(world, [{ status: "resolved" }]);
    await hears(
      world.olivia,
      "ops",
      /^✅ HighCpu on db-1, web-2 [^]*No longer reported: HighCpu on db-1\./,
    );
  });

  it("that flaps shows its state within seconds, delays no other group, and tells its changes as one", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    for (let n = 1; n <= 25; n++) {
      await fire(world, [{ status: "resolved", startsAt: minute(n), endsAt: minute(n) }]);
      await fire(world, [{ startsAt: minute(n + 1) }]);
    }
    const began = performance.now();
    await fire(world, [{ name: "DiskFull", vm: "db-1" }], { groupKey: "other" });
    await hears(world.olivia, "ops", /^🔥 DiskFull on db-1 /);
    expect(performance.now() - began).toBeLessThan(4_000);
    await until(() => wordsOf(inChannel(world).find(({ ts }) => ts === card.ts) ?? card)).toMatch(
      /^🔥 HighCpu on web-2 /,
    );
    await isQuiet(world);
    const turns = inThread(world, card);
    expect(turns.length).toBeLessThan(12);
    expect(turns.at(-1)).toMatch(/^🔥 Fires again: HighCpu on web-2\./);
    expect(turns.join(" ")).toMatch(/It fired and ended \d+ times in between\./);
  });

  it("that no source mentions any more says so, and is taken as over; a removed source ends it at once", async () => {
    await using here = await testRedis();
    const alerts = createAlerts(here.redis, here.key);
    const meaning = { vmIdOf: async () => undefined, channelOf: async () => "C01OPS" };
    const alert = {
      key: "k",
      name: "Old",
      vm: "web-2",
      summary: "",
      severity: "",
      since: 1,
      at: 1,
    };
    const heard = async () =>
      alerts.take("s", { groupKey: "g", alerts: [alert], omitted: 0 }, meaning);
    const { id = "" } = (await heard()) ?? {};
    const silentFor = async (hours: number, format: "alertmanager" | "plain" = "alertmanager") => {
      const { record, revision: _ } = (await alerts.get(id)) ?? {};
      const told = { ...record?.group.told, heardAt: (await alerts.now()) - hours * 3600_000 };
      const old = { ...record, group: { ...record?.group, told } };
      await here.redis.hset(here.key("alert", id), { alert: JSON.stringify(old) });
      await alerts.endUnheard({ s: { format } }, async () => undefined);
      const after = await alerts.get(id);
      return [after?.state, after?.record.silence];
    };
    expect(await silentFor(11)).toEqual(["firing", undefined]);
    // The format `plain` tells of a firing alert only once.
    expect(await silentFor(47, "plain")).toEqual(["firing", undefined]);
    expect(await silentFor(13)).toEqual(["firing", "quiet"]);
    const [quiet] = await alerts.firing();
    expect(quiet?.quietSince).toBeDefined();
    await heard();
    expect((await alerts.firing())[0]?.quietSince).toBeUndefined();
    expect(await silentFor(49)).toEqual(["ended", "unheard"]);
    expect(await alerts.firing()).toEqual([]);
    await heard();
    expect((await alerts.get(id))?.state).toBe("firing");
    const others = { other: { format: "plain" as const } };
    // Another process may have a newer gatehouse.yml, or one that this process can't read.
    for (const inForce of [{ ...others, s: {} }, undefined]) {
      await alerts.endUnheard(others, async () => inForce);
      expect((await alerts.get(id))?.state).toBe("firing");
    }
    await alerts.endUnheard(others, async () => others);
    expect((await alerts.get(id))?.record.silence).toBe("source-removed");
    expect(await alerts.firing()).toEqual([]);
  });

  it("from a source that is new isn't ended by a process that has the former gatehouse.yml, until the source is removed", async () => {
    const former = `${testPolicy}sources: { other: { format: plain, channel: C01OPS } }\n`;
    const added = former.replace("{ other", "{ cron: { format: plain, channel: C01OPS }, other");
    await using world = await startAlertWorld({
      roles: ["worker"],
      policy: former,
      env: { SOURCE_SECRET_OTHER: "test-secret-other" },
    });
    const newer = `${world.env["GATEHOUSE_CONFIG"]}-newer`;
    await writeFile(newer, added);
    const gateway = await world.startProcess("gateway", { GATEHOUSE_CONFIG: newer });
    const body = { alerts: [{ name: "BackupFailed", vm: "db-1", startsAt: minute(0) }] };
    expect((await send({ processes: [gateway] }, "cron", body)).status).toBe(202);
    await hears(world.olivia, "ops", /^🔥 BackupFailed on db-1/);
    const queues = createQueues(world.client, world.key.prefix);
    /** Looks for groups whose source went silent, which only the worker does. */
    const look = async () => {
      const { id = "" } = await queues.schedules.add("alerts-unheard", {});
      await until(() => queues.schedules.getJob(id)).toBeUndefined();
    };
    await look();
    await isQuiet(world);
    expect(inChannel(world).map(wordsOf)).toEqual([
      expect.stringMatching(/^🔥 BackupFailed on db-1/),
    ]);

    await writeFile(newer, former);
    await gateway.reload();
    await look();
    await hears(
      world.olivia,
      "ops",
      /BackupFailed on db-1[^]*cron is no longer a source in gatehouse\.yml/,
    );
    await queues.close();
  });

  it("shows the last known state of a VM that the compute service can't read", async () => {
    await using world = await startAlertWorld();
    world.compute.weather({ match: "reads", slowMs: 3_000 });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    expect(wordsOf(card)).toContain("web-2 in payments was last seen RUNNING.");
  });

  it("follows a VM that is renamed after the alert, and no other one with its old name", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{}]);
    await hears(world.olivia, "ops", /web-2 in payments is RUNNING as of/);
    world.compute.edit.renameVm({ vm: "web-2", name: "web-9" });
    world.compute.edit.addVm({ project: "staging", name: "web-2" });
    await world.olivia.types("ops", "/vm show web-9");
    await hears(world.olivia, "ops", /web-9[^]*RUNNING/);
    await fire(world, [{}, { name: "DiskFull" }]);
    const card = await hears(world.olivia, "ops", /web-9 in payments is RUNNING as of/);
    await world.olivia.presses("Restart…", { in: card.ts });
    expect((await world.ended("vm restart")).record.target.id).toBe("vm-payments-web-2");
  });

  it("makes one request of two presses of one button, and another after the card shows the result", async () => {
    await using world = await startAlertWorld({ receive: "http" });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    const pressed = buttonOn(card, "Restart…");
    await Promise.all(
      [1, 2, 3].map(() => sendSigned(world, pressPayload(world, "olivia", card, pressed))),
    );
    const next = await hears(world.olivia, "ops", /\nRestarted web-2 [^]*\(olivia, /);
    await world.ended("vm restart");
    await world.settled();
    expect(world.compute.writes()).toHaveLength(1);
    await world.olivia.presses("Restart…", { in: next.ts });
    await hears(world.olivia, "ops", /Not repeated: you restarted web-2/);
  });

  it("says during a freeze that changes are frozen, and has the buttons again after it", async () => {
    await using world = await startAlertWorld();
    await fire(world, [{}]);
    await hears(world.olivia, "ops", /Restart…/);
    await world.ada.types("ops", "/gatehouse freeze drill");
    const frozen = await hears(world.olivia, "ops", /HighCpu[^]*All changes are frozen by ada/);
    expect(wordsOf(frozen)).toMatch(/\[Show\] \[Metrics\]/);
    expect(wordsOf(frozen)).not.toContain("Restart…");
    await world.ada.types("ops", "/gatehouse thaw");
    await hears(world.olivia, "ops", /HighCpu on web-2[^]*Restart…/);
  });
});

describe.concurrent("the channel of a group", () => {
  const nowhere = policyWith({ alerts: undefined });

  it("is that of the audit trail for a source without a channel, if gatehouse.yml names no other", async () => {
    await using world = await startAlertWorld({ policy: `${nowhere}${sources}` });
    await fire(world, [{}], { source: "by-team" });
    await hears(world.ada, "audit", /^🔥 HighCpu on web-2 /);
  });

  it("is another one while its own is closed, and its buttons work there", async () => {
    await using world = await startAlertWorld();
    channelNamed(world, "ops").archived = true;
    await fire(world, [{}]);
    const card = await hears(world.ada, "status", /^🔥 HighCpu on web-2 /);
    await world.olivia.presses("Restart…", { in: card.ts });
    const { record } = await world.ended("vm restart");
    expect([record.channelId, record.threadTs]).toEqual([card.channelId, card.ts]);
    await fire(world, [{ status: "resolved" }]);
    expect((await hears(world.ada, "status", /^✅ HighCpu on web-2 [^]*Ended/)).ts).toBe(card.ts);
    channelNamed(world, "ops").archived = false;
    await fire(world, [{ vm: "db-1" }], { groupKey: "next" });
    await hears(world.olivia, "ops", /^🔥 HighCpu on db-1 /);
  });

  it("is its own again once that opens while it fires: its card moves there, and the former card says so", async () => {
    await using world = await startAlertWorld();
    channelNamed(world, "ops").archived = true;
    const { alert } = await fire(world, [{}]);
    const away = await hears(world.ada, "status", /^🔥 HighCpu on web-2 /);
    const key = world.key("alert", String(alert));
    const tryAgain = async () => {
      // Pretend that half a minute is over.
      await world.client.hset(key, "closed:C01OPS", "0");
      await world.client.zadd(world.key("pending"), 0, `alert ${String(alert)}`);
      await until(() => world.client.hget(key, "closed:C01OPS")).not.toBe("0");
    };
    await tryAgain();
    await fire(world, [{}, { vm: "db-1" }]);
    const still = await hears(world.ada, "status", /^🔥 HighCpu on db-1, web-2 /);
    expect(still.ts).toBe(away.ts);
    channelNamed(world, "ops").archived = false;
    await world.client.hset(key, "closed:C01OPS", "0");
    await world.client.zadd(world.key("pending"), 0, `alert ${String(alert)}`);
    const home = await hears(world.olivia, "ops", /^🔥 HighCpu on db-1, web-2 /);
    const moved = await hears(world.ada, "status", /➡️ HighCpu on [^:]+: told in .* from now on/);
    expect(moved.ts).toBe(away.ts);
    await fire(world, [{ status: "resolved" }, { vm: "db-1", status: "resolved" }]);
    expect((await hears(world.olivia, "ops", /^✅ HighCpu on db-1, web-2 [^]*Ended/)).ts).toBe(
      home.ts,
    );
    const end = await hears(world.olivia, "ops", /^✅ HighCpu on db-1, web-2 ended after 9 min\.$/);
    expect(end.threadTs).toBe(home.ts);
    await isQuiet(world);
    expect(inChannel(world)).toHaveLength(1);
    expect(inChannel(world, "status")).toHaveLength(1);
  });

  it("is its own once that opens, if there is no other; status says so meanwhile", async () => {
    const alone = policyWith({ alerts: undefined, audit: undefined });
    await using world = await startAlertWorld({ policy: `${alone}${sources}` });
    channelNamed(world, "ops").archived = true;
    await fire(world, [{}]);
    await until(() => world.lines.some((line) => line.includes("is_archived"))).toBe(true);
    const alerts = createAlerts(world.client, world.key);
    const [untold] = await alerts.untold(0);
    expect(untold?.record.source).toBe("prometheus");
    const told = /1 alert group of prometheus can be shown in no channel/;
    await world.client.hset(world.key("alert", untold?.id ?? ""), "createdAt", 0);
    await world.ada.types("status", "/gatehouse status");
    await hears(world.ada, "status", told);
    channelNamed(world, "ops").archived = false;
    await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(await alerts.untold(0)).toEqual([]);
  });

  it("has no buttons that everyone would be refused because of `channels`", async () => {
    await using world = await startAlertWorld({
      policy: `${testPolicy}${sources}channels: [C02STATUS]\n`,
    });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(wordsOf(card)).toMatch(/\[Show\] \[Metrics\]/);
    expect(wordsOf(card)).not.toMatch(/Restart|Snapshot/);
  });
});

describe.concurrent("with teams", () => {
  it("shows nothing about a team's VM in another team's channel while its own is closed", async () => {
    const policy = teams.replace("channel: C02STATUS }\n  lab", "channel: C01OPS }\n  lab");
    await using world = await startAlertWorld({ policy });
    channelNamed(world, "ops").archived = true;
    await fire(world, [{ name: "SecretLeak" }], { source: "by-team" });
    await hears(world.ada, "audit", /SecretLeak on web-2/);
    expect(JSON.stringify(world.ada.seesChannel("status").messages)).not.toContain("SecretLeak");
  });

  it("a group of a team that has no channel goes to the audit channel, not where others read", async () => {
    const policy = teams.replace(", channel: C02STATUS }\n  lab", " }\n  lab");
    expect(policy).not.toBe(teams);
    await using world = await startAlertWorld({ policy });
    await fire(world, [{ name: "SecretLeak" }], { source: "by-team" });
    await hears(world.ada, "audit", /SecretLeak on web-2/);
    expect(JSON.stringify(world.ada.seesChannel("status").messages)).not.toContain("SecretLeak");
  });

  it("a group goes to the channel of its VM's team, and another team's VM in it is plain text", async () => {
    await using world = await startAlertWorld({ policy: teams });
    await fire(world, [{}, { vm: "train-7", startsAt: minute(1) }], { source: "by-team" });
    const card = await hears(world.olivia, "status", /HighCpu on web-2, train-7/);
    expect(wordsOf(card)).toMatch(/web-2 in payments is RUNNING as of[^]*Also on train-7\./);
    expect(JSON.stringify(card.blocks)).not.toMatch(/vm-ml|ERROR| in ml/);
    await fire(world, [{ vm: "nobody-knows" }], { source: "by-team", groupKey: "unknown" });
    await hears(world.olivia, "status", /HighCpu on nobody-knows/);
  });

  it("a relabeled alert that names another team's VM gives no button for it", async () => {
    await using world = await startAlertWorld({ policy: teams });
    await fire(world, [{ vm: "train-7" }]);
    const card = await hears(world.ada, "ops", /HighCpu on train-7/);
    expect(JSON.stringify(card.blocks)).not.toMatch(/"alert:|vm-ml|ERROR/);
  });

  it("a copied button of a hidden VM is answered like one of a VM that doesn't exist", async () => {
    await using world = await startAlertWorld({ policy: teams, receive: "http" });
    await fire(world, [{ vm: "train-7" }], { source: "by-team" });
    const card = await hears(world.amir, "leads-only", /train-7 in ml is ERROR as of/);
    const restart = buttonOn(card, "Restart…");
    await fire(world, [{}], { source: "by-team", groupKey: "ours" });
    const ours = await hears(world.olivia, "status", /HighCpu on web-2/);
    const before = world.slack.workspace.ephemerals.length;
    for (const pressed of [
      restart,
      { ...restart, value: JSON.stringify({ alert: "a-nothinghere", vm: 0, n: 0 }) },
      {
        ...restart,
        value: JSON.stringify({ ...JSON.parse(buttonOn(ours, "Restart…").value), vm: 7 }),
      },
      { ...restart, value: JSON.stringify({ ...JSON.parse(restart.value), vm: "constructor" }) },
      { ...restart, action: "alert:vm.nothing" },
    ])
      expect(await sendSigned(world, pressPayload(world, "olivia", ours, pressed))).toBe(200);
    await world.slack.until(() => world.slack.workspace.ephemerals.length >= before + 5);
    const said = world.slack.workspace.ephemerals.slice(before).map((one) => JSON.stringify(one));
    for (const one of said) expect(one).toContain("This button no longer works");
    expect(said.join("")).not.toMatch(/train-7|vm-ml/);
    expect(world.compute.writes()).toEqual([]);
    // A person who may only look presses on the right message.
    await sendSigned(world, pressPayload(world, "vera", ours, buttonOn(ours, "Restart…")));
    await world.slack.until(() => world.slack.workspace.ephemerals.length >= before + 6);
    expect(await world.store.openIds()).toEqual([]);
  });

  it("digests, handover, and Home name firing alerts, each for people who see the VM", async () => {
    await using world = await startAlertWorld({ policy: teams });
    await fire(world, [{}, { vm: "train-7", name: "GpuHot" }, { vm: "nobody-knows" }]);
    await world.olivia.types("status", "/gatehouse digest now");
    const digest = await hears(world.olivia, "status", /HighCpu fires on web-2 in payments since/);
    expect(wordsOf(digest)).not.toMatch(/GpuHot|nobody-knows/);
    await world.amir.types("leads-only", "/gatehouse handover");
    await hears(world.amir, "leads-only", /GpuHot fires on train-7 in ml since/);
    const home = () => wordsIn(world.olivia.sees().home?.blocks ?? []).join("\n");
    await world.olivia.opensHome();
    await world.olivia.until(() => home().includes("fires on"));
    expect(home()).not.toMatch(/GpuHot|nobody-knows/);
    expect(home()).toMatch(/HighCpu\* fires on [^\n]*\n\[Show\]\n\[Restart\]\n/);
    const more = Array.from({ length: 9 }, (_, n) => ({
      vm: "db-1",
      name: `More${n}`,
      startsAt: minute(n),
    }));
    await fire(world, more, { groupKey: "more" });
    await world.ada.opensHome();
    const ofAda = () => wordsIn(world.ada.sees().home?.blocks ?? []).join("\n");
    await world.ada.until(() => ofAda().includes("Alerts: the newest 8 of 12"));
    expect(ofAda()).toMatch(/More8[^]*More1/);
    expect(ofAda()).not.toMatch(/More0|nobody-knows/);
  });
});
