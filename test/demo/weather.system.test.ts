import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { demoGuide } from "../../demo/guide.ts";
import { demoPace, demoWorld } from "../../demo/demo-world.ts";
import { startKillableWorker } from "../../demo/killable-worker.ts";
import { createDemoWeather } from "../../demo/weather.ts";
import { type Killable, killableRedis } from "../../sandbox/killable.ts";
import { type Page, startPage } from "../../sandbox/page/page.ts";
import { apiEnv, apiPolicy } from "../../demo/programs.ts";
import type { PageWeather } from "../../sandbox/page/weather.ts";
import { seedLedger } from "../../sandbox/compute/seed.ts";
import { buildWorld, type World } from "../../demo/world.ts";
import { commands } from "../../src/features/index.ts";
import { parseCommand } from "../../src/registry/parse.ts";
import { policyWith, testPace } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** Processes as the demo has them: a Redis and a worker that can be killed, and a gateway. */
describe("the weather of the page", () => {
  let world: World;
  let redis: Killable;
  let worker: Killable;
  let weather: PageWeather;
  let page: Page;
  beforeAll(async () => {
    world = await buildWorld({
      // What suits the pace of the worker, and ends soon: a change that isn't seen to happen
      policy: policyWith({ timing: { httpTimeout: "5s", quiesce: "11s" } }, apiPolicy),
      env: apiEnv,
      // While Slack is away nobody can be looked up who wasn't before
      pace: { ...testPace, claimWindowMs: demoPace.claimWindowMs, peopleCacheMs: 3_600_000 },
      roles: ["gateway"],
      // Long enough to be seen rebooting
      compute: { transitionMs: { restart: 1200, stop: 60, start: 60, restore: 60 } },
      slack: {
        ...demoWorld().slack,
        rateLimits: "off",
        app: { ackTimeoutMs: 90_000, triggerLifeMs: 90_000 },
      },
    });
    if (!world.redis) throw new Error("no Redis of its own");
    redis = killableRedis(world.redis);
    worker = await startKillableWorker(world.env, () => undefined);
    weather = createDemoWeather({ ...world, redis, worker });
    page = await startPage({ slack: world.slack, weather, guide: demoGuide });
  });
  afterAll(async () => {
    for (const open of [page, worker, world, redis]) await open?.close();
  });

  afterEach(async () => {
    for (const { id } of weather.now().switches) await turn(id, false);
  });

  const types = (words: string) => world.slack.person("olivia").types("ops", words);
  const turn = (id: string, on: boolean) => weather.turn({ switch: id, on });
  const said = (words: string) =>
    world.slack.until(() => JSON.stringify(world.slack.seenBy("olivia").channels).includes(words));
  const doneTo = (name: string) =>
    weather.now().vms.find((vm) => vm.name === name && vm.project === "payments")?.done;

  it("keeps a request while the worker is dead, and a new one carries it out once", async () => {
    await turn("worker", true);
    expect(worker.isUp()).toBe(false);
    await world.slack.person("olivia").types("ops", "/vm restart web-2");
    await said("Requested. The result will be in the thread.");
    expect(doneTo("web-2")).toBe("");
    await turn("worker", false);
    await said("Restarted `web-2`");
    expect(doneTo("web-2")).toBe("1 restart");
  });

  it("slows the service down: Slack is answered, and the VM restarts once", async () => {
    await turn("slow", true);
    // In the demo it answers in time, or nothing could be done at all
    const [, timeout] = /httpTimeout: (\d+)s/.exec(demoWorld().policy) ?? [];
    expect(world.compute.forecast()[0]?.slowMs).toBeLessThan(Number(timeout) * 1000);
    expect((await types("/vm restart payments/web-1")).acked).toBe(true);
    await turn("slow", false);
    await said("Restarted `payments/web-1`");
    expect(doneTo("web-1")).toBe("1 restart");
  });

  it("lets the service answer 429: it waits, and goes on by itself", async () => {
    await turn("busy", true);
    await types("/vm stop payments/web-1");
    await said("asked Gatehouse to slow down");
    expect(doneTo("web-1")).not.toContain("stop");
    await turn("busy", false);
    await said("Stopped `payments/web-1`");
    expect(doneTo("web-1")).toContain("1 stop");
  });

  it("lets changes end in 500: nothing is claimed that no look proves", async () => {
    await turn("broken", true);
    await types("/vm start gpu-1");
    await said("`gpu-1` didn't start");
    expect(weather.now().vms.find(({ name }) => name === "gpu-1")?.done).toBe("");
    expect(JSON.stringify(world.slack.seenBy("olivia").channels)).not.toContain("Started `gpu-1`");
    await turn("broken", false);
  });

  it("takes Slack away: what is done meanwhile is told afterwards, once", async () => {
    await turn("slack", true);
    await types("/vm start payments/web-1");
    await until(() => doneTo("web-1")).toContain("1 start,");
    await turn("slack", false);
    await said("Started `payments/web-1`");
    const told = world.slack.person("olivia").mentions();
    expect(told.filter(({ text }) => text.includes("Started payments/web-1"))).toHaveLength(1);
  });

  it("lets somebody else put another VM under a name: what was approved is canceled", async () => {
    await types("/vm snapshot payments/web-1 nightly");
    await said("Took a snapshot of `payments/web-1`");
    await types("/vm restore payments/web-1 nightly");
    const olivia = world.slack.person("olivia");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));
    await olivia.submits({ "Type web-1 to confirm": "web-1", Reason: "bad migration" });
    await said("Waiting for approval");
    await weather.turn({ vm: "vm-payments-web-1", does: "replace" });
    await world.slack.person("amir").presses("Approve");
    await said("from nightly was canceled: web-1 is gone");
    expect(doneTo("web-1")).toBe("");
  });

  it("has no switches for evidence where the world has no such VM, as the demo has", () => {
    const ids = (of: PageWeather) => of.now().switches.map(({ id }) => id);
    expect(ids(weather)).not.toContain("image");
    seedLedger(world.compute.edit);
    const demo = createDemoWeather({ ...world, redis, worker });
    expect(ids(demo)).toEqual(expect.arrayContaining(["image", "debugging", "lists"]));
  });

  it("fires an alert, whose message has buttons, and ends it", async () => {
    await turn("alert", true);
    await said("Restart…");
    // Whoever is on call hears of it on a locked phone
    await until(() => world.slack.seenBy("olivia").inbox.at(-1)?.text).toBe(
      "🔥 HighCpu on web-2: CPU of web-2 above 95% for 5 min",
    );
    const metricsSaid = async () => {
      await types("/vm metrics web-2 15m");
      return JSON.stringify(world.slack.seenBy("olivia").channels);
    };
    // What the metrics say is what the alert says
    await until(metricsSaid).toMatch(/CPU \*(9[5-9]|100)/);
    await turn("alert", false);
    await said("HighCpu on web-2* ended");
  });

  it("loses an answer, and what was done is found out", async () => {
    await turn("lost", true);
    await world.slack.person("olivia").types("ops", "/vm restart db-1");
    await said("Restarted `db-1`");
    expect(doneTo("db-1")).toBe("1 restart");
    await turn("lost", false);
    expect(world.compute.forecast()).toEqual([]);
  });

  it("kills Redis, which refuses a change, and goes on once it is back", async () => {
    const olivia = world.slack.person("olivia");
    await turn("redis", true);
    await olivia.types("ops", "/vm stop db-1");
    await said("nothing was done");
    expect(doneTo("db-1")).toBe("1 restart");
    await turn("redis", false);
    expect(redis.isUp()).toBe(true);
    const stopped = async () => {
      await olivia.types("ops", "/vm stop db-1");
      return doneTo("db-1");
    };
    await until(stopped).toBe("1 stop, 1 restart");
  });

  it("has a deploy job and an agent propose, which runs once somebody presses the button that the switch names", async () => {
    const snapshots = (name: string) => /(\d+) snapshot/.exec(doneTo(name) ?? "")?.[1] ?? "0";
    for (const [id, vm, named] of [
      ["deploy", "db-1", "before-deploy"],
      ["agent", "web-2", "before-the-fix"],
    ] as const) {
      const before = Number(snapshots(vm));
      await turn(id, true);
      await said(`\`${id}\` proposes: *Snapshot ${vm}`);
      expect(Number(snapshots(vm))).toBe(before);
      const { tries } = weather.now().switches.find((one) => one.id === id) ?? {};
      const label = tries && "button" in tries ? tries.button : "";
      await world.slack.person("olivia").presses(label);
      await said(`Took a snapshot of \`${vm}\` as ${named}`);
      expect(Number(snapshots(vm))).toBe(before + 1);
      await turn(id, false);
    }
  });

  it("stands beside a guide whose people and commands there are", () => {
    const people = new Set([...world.slack.workspace.people.values()].map(({ name }) => name));
    const tries = [...demoGuide.tries, ...demoGuide.story.filter((step) => "text" in step)];
    const named = [...demoGuide.people.map(({ who }) => who), ...tries.map((one) => one.as)];
    expect(named.filter((name) => !people.has(name))).toEqual([]);
    for (const { as, channel } of tries)
      expect(world.slack.person(as).seesChannel(channel).member).toBe(true);
    for (const { text } of tries)
      expect(parseCommand(text.slice(1), commands)).not.toHaveProperty("refusal");
  });

  it("can all be turned on and off, each with a command to try, from the page alone", async () => {
    const post = (body: unknown, origin = page.url.slice(0, -1)) =>
      fetch(`${page.url}weather`, {
        method: "POST",
        headers: { origin, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    for (const { id, tries } of weather.now().switches.filter(({ on }) => !on)) {
      if ("text" in tries)
        expect(parseCommand(tries.text.slice(1), commands)).not.toHaveProperty("refusal");
      if (id === "redis" || id === "worker") continue;
      expect((await post({ switch: id, on: true })).status).toBe(200);
      expect(weather.now().switches.find((one) => one.id === id)?.on).toBe(true);
      await post({ switch: id, on: false });
    }
    expect(weather.now().switches.filter(({ on }) => on)).toEqual([]);
    expect((await post({ switch: "nothing", on: true })).status).toBe(409);
    expect((await post({ vm: "vm-payments-web-2", does: "explode" })).status).toBe(400);
    expect((await post({ switch: "lost", on: true }, "http://evil.example")).status).toBe(403);
    await post({ vm: "vm-payments-web-2", does: "replace" });
    expect(() => world.compute.vm("vm-payments-web-2")).toThrow("no VM");
  });
});
