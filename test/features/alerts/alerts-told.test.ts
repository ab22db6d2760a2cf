import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stretchDeadlines } from "../../../src/deadline.ts";
import { createAlerts, firingIn } from "../../../src/features/alerts/alerts.ts";
import { callOf } from "../../../src/core/request/stage.ts";
import { createQueues } from "../../../src/queue/queues.ts";
import { auditOf } from "../../core/asking.ts";
import { buttonOn, pressPayload, sendSigned } from "../../stories/forge.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";
import { policyWith, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { testRedis } from "../../support/with-redis.ts";
import {
  alertmanagerBody,
  bearer,
  type Fired,
  hmac,
  holdPosts,
  makeDue,
  minute,
  pagerdutyBody,
  channelNamed,
  send,
  sources,
  startAlertWorld,
  startWithChannels,
  fire,
  inChannel,
  isQuiet,
  usualSource,
} from "./sending.ts";
import { until } from "../../support/until.ts";
import { isOffered } from "../../support/is-offered.ts";

const offering = (...operations: readonly string[]) =>
  `format: alertmanager, offer: [${operations.join(", ")}]`;

const channels = {
  repeated: usualSource,
  early: usualSource,
  evil: usualSource,
  joined: usualSource,
  menus: usualSource,
  read: usualSource,
  form: offering("vm.resize"),
  busy: usualSource,
  refused: usualSource,
  protected: offering("vm.stop"),
  opened: usualSource,
  offered: offering("vm.restart", "vm.show", "vm.snapshot", "vm.snapshot", "vm.stop", "vm.resize"),
  summaries: usualSource,
  copied: usualSource,
  held: usualSource,
  machines: usualSource,
  disks: "format: plain",
  listed: usualSource,
  unlisted: usualSource,
  flapping: usualSource,
  unread: usualSource,
  renamed: usualSource,
  pressed: usualSource,
  closed: usualSource,
  moved: usualSource,
};

const startShared = () =>
  startWithChannels(channels, {
    policy: policyWith({ protect: ["kept-1"] }, 'confirm: ["asked-*"]\n'),
    prepare: ({ edit }) => {
      for (const name of ["asked-1", "idle-1", "kept-1", "named-1"])
        edit.addVm({ project: "payments", name });
    },
  });
let world: Awaited<ReturnType<typeof startShared>>;
beforeAll(async () => {
  world = await startShared();
});
afterAll(() => world.close());

const menuValues = (blocks: unknown) =>
  [...JSON.stringify(blocks).matchAll(/"value":"((?:[^"\\]|\\.)*)"/g)].map(([, value = ""]) =>
    value.replaceAll("\\", ""),
  );

const teams = `${testPolicy}${sources}teams:
  payments: { projects: [payments], operate: [U0OLIVIA], channel: C02STATUS }
  lab: { projects: [ml], operate: [U0AMIR], channel: C05LEADS }
`;

describe("a delivery of alerts", () => {
  it("is one message and one record, however often it is repeated and by whichever peer", async () => {
    const at = await world.channel("repeated");
    const body = alertmanagerBody([{}]);
    const all = await Promise.all(Array.from({ length: 6 }, () => at.send(body)));
    expect(all.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202, 202]);
    expect(all.filter(({ body: { changed } }) => changed === true)).toHaveLength(1);
    await at.hears(/HighCpu on web-2/);
    await isQuiet(world);
    expect(at.cards()).toHaveLength(1);
    const trail = await auditOf(world.client, world.key("audit"));
    expect(trail.filter(({ source }) => source === "repeated")).toMatchObject([
      { what: "alert", firing: 1 },
    ]);
    expect(JSON.stringify(trail)).not.toContain("CPU above");
  });

  it("shows nothing firing when it tells the end before the beginning", async () => {
    const at = await world.channel("early");
    await at.fire([{ status: "resolved" }]);
    await at.fire([{}]);
    await at.fire([{ vm: "db-1" }], "other");
    await at.hears(/HighCpu on db-1/);
    await at.quiet();
    expect(at.cards()).toHaveLength(1);
  });

  it("is no new message when PagerDuty repeats it", async () => {
    const post = (body: string) =>
      send(world, "pagerduty", body, {
        "x-pagerduty-signature": `v1=${hmac("test-secret-new", body)}`,
      });
    const fired = JSON.stringify(pagerdutyBody());
    const over = JSON.stringify(pagerdutyBody("resolved", minute(7)));
    for (const body of [fired, over, fired, over]) expect((await post(body)).status).toBe(202);
    const ended = /^✅ A little bump in the road on web-2 ended after 8 min\.\s[^]*Ended/;
    const card = await hears(world.olivia, "ops", ended);
    await isQuiet(world);
    expect(inChannel(world).map(({ ts }) => ts)).toEqual([card.ts]);
  });

  it("is shown as text with the mentions, links, and marks in it, and mentions nobody", async () => {
    const at = await world.channel("evil");
    const evil =
      "<!channel> <@U0OLIVIA> <https://evil.example|click> @here *b* :fire: \u202edlrow\u0000";
    const many = Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`l${n}`, "x"]));
    const vm = `${evil}${"z".repeat(60_000)}`;
    await at.fire([{ name: evil, vm, summary: evil, severity: evil, labels: many }]);
    const card = await at.hears(/evil\.example/);
    const raw = JSON.stringify([card.text, card.blocks]);
    expect(raw).not.toMatch(/<!channel|<@U0|<https|\u202e|\\u0000|[^\u2060]@here|"(?:l1|z{300})/);
    expect(raw.length).toBeLessThan(5_000);
    await at.quiet();
    const here = world.olivia.mentions().filter(({ channelId }) => channelId === at.id);
    expect(here).toEqual([]);
    expect(raw).not.toContain("Restart");
    expect(world.lines.join("")).not.toContain("evil.example");
  });
});

describe("the message of a group", () => {
  it("is edited as VMs join it and end, and its thread says so", async () => {
    const at = await world.channel("joined");
    await at.fire([{}]);
    const card = await at.hears(/HighCpu on web-2/);
    await at.fire([{}, { vm: "db-1" }]);
    await at.hears(/🔥 HighCpu fires on db-1 too\./);
    const both = await at.hears(/HighCpu on db-1, web-2[^]*2 alerts firing/);
    expect(both.ts).toBe(card.ts);
    expect(wordsOf(both)).toMatch(
      /db-1 in payments is RUNNING as of[^]*web-2 in payments is RUNNING as of/,
    );
    await at.fire([{ status: "resolved" }, { vm: "db-1" }]);
    await at.hears(/^🔥 HighCpu on db-1 /);
    await at.fire([{ status: "resolved" }, { vm: "db-1", status: "resolved" }]);
    await at.hears(/✅ HighCpu on db-1, web-2 ended/);
    await at.quiet();
    expect(at.thread(card)).toEqual([
      "🔥 HighCpu fires on db-1 too.",
      "✅ HighCpu on db-1, web-2 ended after 9 min.",
    ]);
    await at.fire([{ startsAt: minute(15) }]);
    await at.hears(/🔥 Fires again: HighCpu on web-2\./);
    await at.hears(/^🔥 HighCpu on web-2 /);
    expect(at.cards()).toHaveLength(1);
  });

  it("has a menu for each of several VMs, whose Restart… asks first", async () => {
    const at = await world.channel("menus");
    await at.fire([
      {},
      { vm: "db-1" },
      { vm: "10.0.0.7:9100", label: "instance" },
      { vm: "web-1" },
    ]);
    const card = await at.hears(/HighCpu on/);
    expect(wordsOf(card)).toMatch(/Also on (10\.0\.0\.7:9100, web-1|web-1, 10\.0\.0\.7:9100)\./);
    const value = menuValues(card.blocks).find((one) => one.includes("vm.restart")) ?? "";
    expect(value.length).toBeLessThanOrEqual(75);
    await world.olivia.chooses("menu", value, { in: card.ts });
    await at.hears(/Restart (web-2|db-1)\? What runs there is interrupted/);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.presses("Restart", { channel: "menus" });
    const { record } = await world.ended("vm restart");
    expect(record.threadTs).toBe(card.ts);
  });

  it("says the present state of every VM with controls, whatever the inventory read last", async () => {
    const at = await world.channel("read");
    const vms = ["web-1", "idle-1", "db-1", "worker-1", "train-7", "gpu-1"];
    world.compute.edit.setStatus({ vm: "idle-1", status: "STOPPED" });
    await at.fire(vms.map((vm, n) => ({ vm, startsAt: minute(n) })));
    await at.hears(/idle-1 in payments is STOPPED as of[^]*gpu-1 in ml is STOPPED/);
    await at.fire([{ vm: "idle-1" }], "alone");
    const card = await at.hears(/^🔥 HighCpu on idle-1 /);
    expect(wordsOf(card)).toMatch(/STOPPED as of[^]*\[Show\] \[Metrics\] \[Graph\]\s+\[Start\]/);
  });

  it("opens the form of a command that has one, whose result comes into its thread", async () => {
    const at = await world.channel("form");
    await at.fire([{}]);
    const card = await at.hears(/HighCpu on web-2/);
    await world.olivia.presses("Resize…", { in: card.ts });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.submits({ CPU: "8", Memory: "8" });
    const { record } = await world.ended("vm resize");
    expect([record.threadTs, record.target.id]).toEqual([card.ts, "vm-payments-web-2"]);
    await at.hears(
      /Resized web-2[^(]*\(olivia, [^)]*\)\. Still firing, as far as [\w-]+ has told\./,
    );
  });

  it("says who works on it, then the result, and the VM's present state", async () => {
    const at = await world.channel("busy");
    const { alert } = await at.fire([{ vm: "db-1" }]);
    const card = await at.hears(/HighCpu on db-1/);
    world.compute.weather({ match: "POST /v1/vms/:id/restart", stuck: true, times: 1 });
    await world.olivia.presses("Restart…", { in: card.ts });
    const busy = await at.hears(/👤 olivia is on it: Restart db-1/, world.vera);
    expect(busy.ts).toBe(card.ts);
    // Only a status that was seen after the send proves that it restarted.
    await until(async () => {
      const [request] = await world.store.getMany(await world.store.recentIds({}, 1));
      return request && callOf(request.stage)?.mark?.status;
    }).toBe("REBOOTING");
    world.compute.edit.setStatus({ vm: "db-1", status: "RUNNING" });
    world.compute.edit.setMachine({ vm: "db-1" });
    const restarted =
      /🔥[^]*\nRestarted db-1 in \d+ s \(olivia, [^)]*\)\. Still firing, as far as [\w-]+ has told\./;
    const over = await at.hears(restarted, world.vera);
    expect(wordsOf(over)).toMatch(/db-1 in payments is RUNNING as of[^]*\[Restart…\]/);
    expect(wordsOf(over)).not.toContain("is on it");
    const { record } = await world.ended("vm restart");
    const origin = expect.objectContaining({ kind: "alert", alert }) as unknown;
    expect(record.origin).toEqual(origin);
    expect(await auditOf(world.client, world.key("audit"))).toContainEqual(
      expect.objectContaining({ what: "request", origin, who: "U0OLIVIA" }),
    );
  });

  it("offers in ERROR the same commands as the VM's own card: not those that the service has refused for it", async () => {
    const at = await world.channel("refused");
    await at.fire([{ vm: "train-7" }]);
    const card = await at.hears(/HighCpu on train-7[^]*\[Restart…\]/);
    world.compute.weather({ match: "POST /v1/vms/:id/restart", status: 409, times: 1 });
    await world.olivia.presses("Restart…", { in: card.ts });
    await world.ended("vm restart");
    const refused = await at.hears(
      /HighCpu on train-7[^]*The compute service refuses this while the VM is in ERROR/,
    );
    expect(refused.ts).toBe(card.ts);
    expect(wordsOf(refused)).toMatch(/\[Show\] \[Metrics\]/);
    expect(wordsOf(refused)).not.toContain("[Restart…]");
    // The menu beside another VM leaves it out too.
    await at.fire([{ vm: "train-7" }, {}], "two");
    const both = await at.hears(/HighCpu on (train-7, web-2|web-2, train-7)/);
    const rows = JSON.stringify(both.blocks);
    expect(rows.match(/"Restart \S+…"/g)).toEqual(['"Restart web-2…"']);
    // Restart is offered again once the VM has left ERROR.
    world.compute.edit.setStatus({ vm: "train-7", status: "RUNNING" });
    await at.fire([{ vm: "train-7" }], "later");
    await at.hears(/^🔥 HighCpu on train-7 [^]*RUNNING as of[^]*\[Restart…\]/);
  });

  it("doesn't offer changes that gatehouse.yml protects the VM from", async () => {
    const at = await world.channel("protected");
    await at.fire([{ vm: "kept-1" }]);
    const card = wordsOf(await at.hears(/HighCpu on kept-1/));
    expect(card).toContain("[Restart…]");
    expect(card).not.toContain("[Stop");
    await at.fire([{ vm: "db-1" }], "other");
    await at.hears(/HighCpu on db-1[^]*\[Stop…\]/);
  });

  it("doesn't name a person who only opened the form", async () => {
    const at = await world.channel("opened");
    await at.fire([{ vm: "asked-1" }]);
    const card = await at.hears(/HighCpu on asked-1/);
    await world.olivia.presses("Restart…", { in: card.ts });
    await world.olivia.until(({ modals }) => modals.length > 0);
    await at.fire([{ vm: "asked-1" }, { vm: "gone-1" }]);
    const after = await at.hears(/HighCpu on asked-1, gone-1/);
    expect(wordsOf(after)).not.toContain("olivia");
    await world.olivia.closes({ all: true });
  });

  it("offers each command once, however often it is named, and a menu of those that fit", async () => {
    const at = await world.channel("offered");
    await at.fire([{}]);
    const one = await at.hears(/^🔥 HighCpu on web-2 /);
    expect(wordsOf(one)).toMatch(
      /\[Show\] \[Metrics\] \[Graph\]\s+\[Restart…\] \[Snapshot\] \[Stop…\] \[Resize…\]/,
    );
    await at.fire([{}, { vm: "db-1" }]);
    const two = await at.hears(/^🔥 HighCpu on db-1, web-2 /);
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
    const at = await world.channel("summaries");
    const disks = ["/var 95% full", "/home 99% full"];
    await at.fire(disks.map((summary, n) => ({ name: `Disk${n}`, summary })));
    await at.hears(
      /^🔥 Disk0, Disk1 on web-2 [^]*Disk0: \/var 95% full\s+Disk1: \/home 99% full\s+2 alerts firing/,
    );
    await at.fire([{ name: "Hot", vm: "db-1" }]);
    await at.hears(/^🔥 Hot fires on db-1 too\.$/);
    await at.fire([{ vm: "gone-1" }, { vm: "gone-2" }], "words");
    await at.hears(/^🔥 HighCpu on gone-1, gone-2 [^]*CPU above 95% for 5 min/);
  });

  it("keeps the newest events of a group that flaps, and each request of its buttons once", async () => {
    await using here = await testRedis();
    const alerts = createAlerts(here.redis, here.key);
    const meaning = { vmOf: async () => undefined, channelOf: async () => "C01OPS" };
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

  it("isn't opened again by the late copy of a peer, which is told by its address", async () => {
    const at = await world.channel("copied");
    const from = (peer: string) => ({ ...bearer(), "x-forwarded-for": peer });
    const post = async (tells: Fired, peer: string) =>
      (await at.send(alertmanagerBody([tells]), from(peer))).body["changed"];
    expect(await post({}, "10.0.0.1")).toBe(true);
    expect(await post({ status: "resolved" }, "10.0.0.1")).toBe(true);
    expect(await post({}, "10.0.0.2")).toBe(false);
    expect(await post({ status: "resolved" }, "10.0.0.2")).toBe(false);
    await at.hears(/^✅ HighCpu on web-2 /);
  });

  it("fires again when a held delivery, perhaps a late copy, counts after a minute", async () => {
    const at = await world.channel("held");
    const from = (peer: string) => ({ ...bearer(), "x-forwarded-for": peer });
    const post = async (tells: Fired, peer: string) =>
      (await at.send(alertmanagerBody([tells]), from(peer))).body["alert"];
    await post({}, "10.0.0.1");
    await post({ status: "resolved" }, "10.0.0.1");
    const id = String(await post({}, "10.0.0.2"));
    await at.hears(/^✅ HighCpu on web-2 /);
    const key = world.key("alert", id);
    const record = JSON.parse((await world.client.hget(key, "alert")) ?? "{}") as {
      group: { held: { from: number }[] };
    };
    const countsAt = Math.min(...record.group.held.map(({ from: since }) => since));
    const dueAt = await world.client.zscore(world.key("pending"), `alert-held ${id}`);
    expect(Number(dueAt)).toBeGreaterThanOrEqual(countsAt);
    // Pretend that the minute is over.
    for (const held of record.group.held) held.from = 1;
    await world.client.hset(key, "alert", JSON.stringify(record));
    await makeDue(world, "alert-held", id);
    await at.hears(/^🔥 HighCpu on web-2 /);
    await at.hears(/🔥 Fires again: HighCpu on web-2\./);
    await until(() => world.client.zscore(world.key("pending"), `alert-held ${id}`)).toBeNull();
  });

  it("counts each of many machines that post at once at two gateways", async () => {
    const gateway = await world.startProcess("gateway");
    const apis = [world, { processes: [gateway] }];
    const bodies = {
      disks: (vm: string) => ({ alerts: [{ name: "DiskFull", vm, startsAt: minute(0) }] }),
      // Each delivery lists only its own alert, and says that there are others.
      machines: (vm: string) => ({
        ...alertmanagerBody([{ name: "DiskFull", vm }]),
        truncatedAlerts: 1,
      }),
    };
    for (const source of ["disks", "machines"] as const) {
      const at = await world.channel(source);
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          send(apis[n % 2] ?? world, source, bodies[source](`machine-${n}`)),
        ),
      );
      expect(new Set(all.map(({ status }) => status))).toEqual(new Set([202]));
      const [id] = new Set(all.map(({ body }) => body["alert"]));
      const alert = await createAlerts(world.client, world.key).get(String(id));
      expect(alert && firingIn(alert.record.group)).toBe(20);
      await at.hears(/20 alerts firing/);
    }
    await gateway.close();
  });

  it("is refused when another process writes to it all the time, with all that wait behind it", async () => {
    await using here = await testRedis();
    const alerts = createAlerts(here.redis, here.key);
    const tells = (vm: string) => {
      const alert = { key: vm, name: "Full", vm, summary: "", severity: "", since: 1, at: 1 };
      return { groupKey: "g", alerts: [alert], omitted: 0 };
    };
    const calm = { vmOf: async () => undefined, channelOf: async () => "C01OPS" };
    const id = (await alerts.take("s", tells("first"), calm))?.id ?? "";
    const vmOf = async () => {
      await alerts.touch(id);
      return undefined;
    };
    // The other process never ends, so this deadline always passes
    stretchDeadlines(0.05);
    const both = ["second", "third"].map((vm) => alerts.take("s", tells(vm), { ...calm, vmOf }));
    stretchDeadlines(30);
    expect(await Promise.all(both)).toEqual([undefined, undefined]);
    // No delivery loses its turn.
    expect(await alerts.take("s", tells("fourth"), calm)).toEqual({ id, isChanged: true });
    const alert = await alerts.get(id);
    expect(alert && firingIn(alert.record.group)).toBe(2);
  });

  it("fires as long as its source leaves alerts out, and says that it doesn't know their state", async () => {
    const at = await world.channel("unlisted");
    const post = async (tells: readonly Fired[], truncatedAlerts: number) => {
      const body = { ...alertmanagerBody(tells), truncatedAlerts };
      expect((await at.send(body)).status).toBe(202);
    };
    await post([{}, { vm: "db-1" }], 3);
    await at.hears(
      /^🔥 HighCpu on db-1, web-2 [^]*2 alerts firing, since[^]*3 more not listed by unlisted/,
    );
    const over = { status: "resolved" } as const;
    await post([over, { vm: "db-1", ...over }], 3);
    const open = await at.hears(
      /^🔥 HighCpu on db-1, web-2 [^]*Those listed have ended\. 3 more not listed: unlisted doesn't say whether they fire\./,
    );
    expect(wordsOf(open)).not.toContain("Restart…");
    await post([{ vm: "gpu-1", ...over }], 0);
    await at.hears(/^✅ HighCpu on /);
  });

  it("names alerts that are no longer reported, and ends with those that a complete list still has", async () => {
    const at = await world.channel("listed");
    await at.fire([{}, { vm: "db-1" }]);
    await at.hears(/^🔥 HighCpu on db-1, web-2 /);
    await at.fire([{}]);
    await at.hears(/^🔥 HighCpu on web-2 [^]*No longer reported: HighCpu on db-1\./);
    await at.fire([{ status: "resolved" }]);
    await at.hears(/^✅ HighCpu on db-1, web-2 [^]*No longer reported: HighCpu on db-1\./);
  });

  it("shows the present state of a group that flaps, and tells its changes as one", async () => {
    const at = await world.channel("flapping");
    const { alert } = await at.fire([{}]);
    const card = await at.hears(/^🔥 HighCpu on web-2 /);
    await at.quiet();
    const letPosts = await holdPosts(world, at.id);
    for (let n = 1; n <= 4; n++) {
      await at.fire([{ status: "resolved", startsAt: minute(n), endsAt: minute(n) }]);
      await at.fire([{ startsAt: minute(n + 1) }]);
    }
    // However often it flaps, it has one place in the line of the channel, so it delays no other group
    const inLine = () => world.client.zcard(world.key("line", "post", at.id));
    expect(await until(async () => (await inLine()) || undefined)).toBe(1);
    await letPosts();
    await makeDue(world, "alert", String(alert));
    await at.hears(/^🔥 Fires again: HighCpu on web-2\. It fired and ended 3 times in between\.$/);
    await at.quiet();
    expect(at.thread(card)).toHaveLength(1);
    expect(at.cards().map(wordsOf)).toEqual([expect.stringMatching(/^🔥 HighCpu on web-2 /)]);
  });

  it("says that no source mentions the group any more, which is treated as ended then; a removed source ends it at once", async () => {
    await using here = await testRedis();
    const alerts = createAlerts(here.redis, here.key);
    const meaning = { vmOf: async () => undefined, channelOf: async () => "C01OPS" };
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

  it("isn't ended by a process whose former gatehouse.yml lacks its source, until the source is removed", async () => {
    const former = `${testPolicy}sources: { other: { format: plain, channel: C01OPS } }\n`;
    const added = former.replace("{ other", "{ cron: { format: plain, channel: C01OPS }, other");
    await using own = await startAlertWorld({
      roles: ["worker"],
      policy: former,
      env: { SOURCE_SECRET_OTHER: "test-secret-other" },
    });
    const newer = `${own.env["GATEHOUSE_CONFIG"]}-newer`;
    await writeFile(newer, added);
    const gateway = await own.startProcess("gateway", { GATEHOUSE_CONFIG: newer });
    const body = { alerts: [{ name: "BackupFailed", vm: "db-1", startsAt: minute(0) }] };
    expect((await send({ processes: [gateway] }, "cron", body)).status).toBe(202);
    await hears(own.olivia, "ops", /^🔥 BackupFailed on db-1/);
    const queues = createQueues(own.client, own.key.prefix);
    /** Looks for groups whose source went silent, which only the worker does. */
    const look = async () => {
      const { id = "" } = await queues.schedules.add("alerts-unheard", {});
      await until(() => queues.schedules.getJob(id)).toBeUndefined();
    };
    await look();
    await isQuiet(own);
    expect(inChannel(own).map(wordsOf)).toEqual([
      expect.stringMatching(/^🔥 BackupFailed on db-1/),
    ]);

    await writeFile(newer, former);
    await gateway.reload();
    await look();
    await hears(
      own.olivia,
      "ops",
      /BackupFailed on db-1[^]*cron is no longer a source in gatehouse\.yml/,
    );
    await queues.close();
  });

  it("shows the last known state of a VM that the compute service doesn't answer about in time", async () => {
    const at = await world.channel("unread");
    world.compute.weather({ match: "GET /v1/vms/vm-payments-web-2", hang: "before", times: 1 });
    // The service never answers, so this deadline always passes
    stretchDeadlines(0.3);
    await at.fire([{}]);
    const card = await at.hears(/HighCpu on web-2/).finally(() => stretchDeadlines(30));
    expect(wordsOf(card)).toContain("web-2 in payments was last seen RUNNING.");
  });

  it("follows a VM that is renamed after the alert, and no other one with its old name", async () => {
    const at = await world.channel("renamed");
    await at.fire([{ vm: "named-1" }]);
    await at.hears(/named-1 in payments is RUNNING as of/);
    const { id } = world.compute.edit.findVm("named-1");
    world.compute.edit.renameVm({ vm: "named-1", name: "named-9" });
    world.compute.edit.addVm({ project: "staging", name: "named-1" });
    await world.olivia.types("renamed", "/vm show named-9");
    await at.hears(/named-9[^]*RUNNING/);
    await at.fire([{ vm: "named-1" }, { vm: "named-1", name: "DiskFull" }]);
    const card = await at.hears(/named-9 in payments is RUNNING as of/);
    await world.olivia.presses("Restart…", { in: card.ts });
    expect((await world.ended("vm restart")).record.target.id).toBe(id);
  });

  it("makes one request of three presses of one button, and another after the card shows the result", async () => {
    const at = await world.channel("pressed");
    await at.fire([{}]);
    const card = await at.hears(/HighCpu on web-2/);
    const press = () => world.olivia.presses("Restart…", { in: card.ts });
    await Promise.all([press(), press(), press()]);
    await at.hears(/\nRestarted web-2 [^]*\(olivia, /);
    await world.ended("vm restart");
    await world.settled();
    expect(world.compute.writes()).toHaveLength(1);
    // The same restart within ten seconds would be the same request.
    await world.client.del(...(await world.client.keys(world.key("same", "*"))));
    await press();
    await world.compute.called("POST /v1/vms/:id/restart", 2);
    await world.settled();
    expect(world.compute.writes()).toHaveLength(2);
  });

  it("says during a freeze that changes are frozen, and has the buttons again after it", async () => {
    await using own = await startAlertWorld();
    await fire(own, [{}]);
    await hears(own.olivia, "ops", /Restart…/);
    await own.ada.types("ops", "/gatehouse freeze drill");
    const frozen = await hears(own.olivia, "ops", /HighCpu[^]*All changes are frozen by ada/);
    expect(wordsOf(frozen)).toMatch(/\[Show\] \[Metrics\]/);
    expect(wordsOf(frozen)).not.toContain("Restart…");
    await own.ada.types("ops", "/gatehouse thaw");
    await hears(own.olivia, "ops", /HighCpu on web-2[^]*Restart…/);
  });
});

describe("the channel of a group", () => {
  it("is another one while its own is closed, and its buttons work there", async () => {
    const at = await world.channel("closed");
    at.archive();
    await at.fire([{ name: "Closed" }]);
    const card = await hears(world.ada, "status", /^🔥 Closed on web-2 /);
    await world.olivia.presses("Restart…", { in: card.ts });
    const { record } = await world.ended("vm restart");
    expect([record.channelId, record.threadTs]).toEqual([card.channelId, card.ts]);
    await at.fire([{ name: "Closed", status: "resolved" }]);
    expect((await hears(world.ada, "status", /^✅ Closed on web-2 [^]*Ended/)).ts).toBe(card.ts);
    at.archive(false);
    await at.fire([{ vm: "db-1" }], "next");
    await at.hears(/^🔥 HighCpu on db-1 /);
  });

  it("is its own again once that opens while it fires: its card moves there, and the former card says so", async () => {
    const at = await world.channel("moved");
    at.archive();
    const one = { name: "Moved" };
    const other = { name: "Moved", vm: "db-1" };
    const { alert } = await at.fire([one]);
    const away = await hears(world.ada, "status", /^🔥 Moved on web-2 /);
    const key = world.key("alert", String(alert));
    const tryAgain = async () => {
      // Pretend that half a minute is over.
      await world.client.hset(key, `closed:${at.id}`, "0");
      await makeDue(world, "alert", String(alert));
    };
    await tryAgain();
    await until(() => world.client.hget(key, `closed:${at.id}`)).not.toBe("0");
    await at.fire([one, other]);
    const still = await hears(world.ada, "status", /^🔥 Moved on db-1, web-2 /);
    expect(still.ts).toBe(away.ts);
    at.archive(false);
    await tryAgain();
    const home = await at.hears(/^🔥 Moved on db-1, web-2 /);
    const moved = await hears(world.ada, "status", /➡️ Moved on [^:]+: told in .* from now on/);
    expect(moved.ts).toBe(away.ts);
    const over = { status: "resolved" } as const;
    await at.fire([
      { ...one, ...over },
      { ...other, ...over },
    ]);
    expect((await at.hears(/^✅ Moved on db-1, web-2 [^]*Ended/)).ts).toBe(home.ts);
    const end = await at.hears(/^✅ Moved on db-1, web-2 ended after 9 min\.$/);
    expect(end.threadTs).toBe(home.ts);
    await at.quiet();
    expect(at.cards()).toHaveLength(1);
    const elsewhere = inChannel(world, "status").filter((seen) => wordsOf(seen).includes("Moved"));
    expect(elsewhere).toHaveLength(1);
  });

  describe("where gatehouse.yml names no channel for alerts", () => {
    let own: TestWorld;
    beforeAll(async () => {
      const nowhere = policyWith({ alerts: undefined });
      own = await startAlertWorld({ policy: `${nowhere}${sources}channels: [C02STATUS]\n` });
    });
    afterAll(() => own.close());

    it("is that of the audit trail for a source without a channel", async () => {
      await fire(own, [{}], { source: "by-team" });
      await hears(own.ada, "audit", /^🔥 HighCpu on web-2 /);
    });

    it("has no buttons that everyone would be refused because of `channels`", async () => {
      await fire(own, [{}]);
      const card = await hears(own.olivia, "ops", /^🔥 HighCpu on web-2 /);
      expect(wordsOf(card)).toMatch(/\[Show\] \[Metrics\]/);
      expect(wordsOf(card)).not.toMatch(/Restart|Snapshot/);
    });
  });

  it("is its own once that opens, if there is no other; status says so meanwhile", async () => {
    const alone = policyWith({ alerts: undefined, audit: undefined });
    await using own = await startAlertWorld({ policy: `${alone}${sources}` });
    channelNamed(own, "ops").archived = true;
    await fire(own, [{}]);
    await until(() => own.lines.some((line) => line.includes("is_archived"))).toBe(true);
    const alerts = createAlerts(own.client, own.key);
    const [untold] = await alerts.untold(0);
    expect(untold?.record.source).toBe("prometheus");
    const told = /1 alert group of prometheus can be shown in no channel/;
    const key = own.key("alert", untold?.id ?? "");
    await own.client.hset(key, "createdAt", 0);
    await own.ada.types("status", "/gatehouse status");
    await hears(own.ada, "status", told);
    channelNamed(own, "ops").archived = false;
    // Pretend that it is time to try again.
    await own.client.hset(key, "closed:C01OPS", "0");
    await makeDue(own, "alert", untold?.id ?? "");
    await hears(own.olivia, "ops", /^🔥 HighCpu on web-2 /);
    expect(await alerts.untold(0)).toEqual([]);
  });
});

describe("an alert of a team's VM", () => {
  it("goes to the audit channel, not where others read, while its team has no channel or a closed one", async () => {
    const policy = `${testPolicy}${sources}teams:
  payments: { projects: [payments], operate: [U0OLIVIA] }
  staging: { projects: [staging], operate: [U0OLIVIA], channel: C01OPS }
`;
    await using own = await startAlertWorld({ policy });
    channelNamed(own, "ops").archived = true;
    await fire(own, [{ name: "SecretLeak" }], { source: "by-team", groupKey: "none" });
    await hears(own.ada, "audit", /SecretLeak on web-2/);
    await fire(own, [{ name: "SecretLeak", vm: "worker-1" }], { source: "by-team" });
    await hears(own.ada, "audit", /SecretLeak on worker-1/);
    expect(JSON.stringify(own.ada.seesChannel("status").messages)).not.toContain("SecretLeak");
  });

  describe("with a channel for each team", () => {
    let own: TestWorld;
    beforeAll(async () => {
      own = await startAlertWorld({ policy: teams, receive: "http" });
    });
    afterAll(() => own.close());

    it("goes to the channel of its team, and another team's VM in its group is plain text", async () => {
      await fire(own, [{}, { vm: "train-7", startsAt: minute(1) }], { source: "by-team" });
      const card = await hears(own.olivia, "status", /HighCpu on web-2, train-7/);
      expect(wordsOf(card)).toMatch(/web-2 in payments is RUNNING as of[^]*Also on train-7\./);
      expect(JSON.stringify(card.blocks)).not.toMatch(/vm-ml|ERROR| in ml/);
      await fire(own, [{ vm: "nobody-knows" }], { source: "by-team", groupKey: "unknown" });
      await hears(own.olivia, "status", /HighCpu on nobody-knows/);
    });

    it("gets no button in the channel of others, whatever a relabeled alert names", async () => {
      await fire(own, [{ vm: "train-7" }]);
      const card = await hears(own.ada, "ops", /HighCpu on train-7/);
      expect(JSON.stringify(card.blocks)).not.toMatch(/"alert:|vm-ml|ERROR/);
    });

    it("has buttons whose copies are answered to others like those of a VM that doesn't exist", async () => {
      const source = "by-team";
      await fire(own, [{ vm: "train-7", name: "Hidden" }], { source, groupKey: "hidden" });
      const card = await hears(own.amir, "leads-only", /Hidden[^]*train-7 in ml is ERROR as of/);
      const restart = buttonOn(card, "Restart…");
      await fire(own, [{ name: "Ours" }], { source, groupKey: "ours" });
      const ours = await hears(own.olivia, "status", /Ours on web-2/);
      const ephemerals = () => own.slack.workspace.ephemerals;
      const before = ephemerals().length;
      const ofOurs = JSON.parse(buttonOn(ours, "Restart…").value) as object;
      for (const pressed of [
        restart,
        { ...restart, value: JSON.stringify({ alert: "a-nothinghere", vm: 0, n: 0 }) },
        { ...restart, value: JSON.stringify({ ...ofOurs, vm: 7 }) },
        { ...restart, value: JSON.stringify({ ...JSON.parse(restart.value), vm: "constructor" }) },
        { ...restart, action: "alert:vm.nothing" },
      ])
        expect(await sendSigned(own, pressPayload(own, "olivia", ours, pressed))).toBe(200);
      await own.slack.until(() => ephemerals().length >= before + 5);
      const said = ephemerals()
        .slice(before)
        .map((one) => JSON.stringify(one));
      for (const one of said) expect(one).toContain("This button no longer works");
      expect(said.join("")).not.toMatch(/train-7|vm-ml/);
      expect(own.compute.writes()).toEqual([]);
      // A person who may only look presses on the right message.
      await sendSigned(own, pressPayload(own, "vera", ours, buttonOn(ours, "Restart…")));
      await own.slack.until(() => ephemerals().length >= before + 6);
      expect(await own.store.openIds()).toEqual([]);
    });
  });

  it("is named by digests, handover, and Home, each for people who see the VM", async () => {
    await using own = await startAlertWorld({ policy: teams });
    await fire(own, [{}, { vm: "train-7", name: "GpuHot" }, { vm: "nobody-knows" }]);
    if (isOffered("gatehouse digest")) {
      await own.olivia.types("status", "/gatehouse digest now");
      const digest = await hears(
        own.olivia,
        "status",
        /HighCpu has been firing on web-2 in payments since/,
      );
      expect(wordsOf(digest)).not.toMatch(/GpuHot|nobody-knows/);
      await own.amir.types("leads-only", "/gatehouse handover");
      await hears(own.amir, "leads-only", /GpuHot has been firing on train-7 in ml since/);
    }
    const home = () => wordsIn(own.olivia.sees().home?.blocks ?? []).join("\n");
    await own.olivia.opensHome();
    await own.olivia.until(() => home().includes("firing on"));
    expect(home()).not.toMatch(/GpuHot|nobody-knows/);
    expect(home()).toMatch(/HighCpu\* has been firing on [^\n]*\n\[Show\]\n\[Restart\]\n/);
    const more = Array.from({ length: 9 }, (_, n) => ({
      vm: "db-1",
      name: `More${n}`,
      startsAt: minute(n),
    }));
    await fire(own, more, { groupKey: "more" });
    await own.ada.opensHome();
    const ofAda = () => wordsIn(own.ada.sees().home?.blocks ?? []).join("\n");
    await own.ada.until(() => ofAda().includes("Alerts: the newest 8 of 12"));
    expect(ofAda()).toMatch(/More8[^]*More1/);
    expect(ofAda()).not.toMatch(/More0|nobody-knows/);
  });
});
