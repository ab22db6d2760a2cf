import { describe, expect, it } from "vitest";
import { createOutageStore, type OutageStore } from "../../src/features/outages/outages.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import {
  policyWith,
  startWorld,
  type TestWorld,
  type TestWorldOptions,
} from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { passQuiet, passStart } from "../support/pass-time.ts";
import { pendingOf } from "../support/pending.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

/** An outage counts after two seconds. */
const policy = policyWith({ timing: { outage: "2s" } });

interface RecapWorld extends TestWorld {
  outages: OutageStore;
}

async function startAttentive(options: TestWorldOptions = {}): Promise<RecapWorld> {
  // The relay, which runs twice in a sweep, wakes the recap of an outage that is over
  const world = await startWorld({ policy, pace: { sweepMs: 500 }, ...options });
  return { ...world, outages: createOutageStore(world.client, world.key) };
}

const posting = [
  "chat.postMessage",
  "chat.update",
  "conversations.history",
  "conversations.replies",
];

function slackGoes(world: TestWorld): void {
  for (const method of posting) world.slack.weather.add({ method, kind: "lost-before" });
}

const isAway = (world: RecapWorld, part: string) =>
  until(async () => (await world.outages.state()).open.map((one) => one.part)).toContain(part);

const recapsIn = (world: TestWorld, channel: string): SeenMessage[] =>
  world.ada.seesChannel(channel).messages.filter(({ text }) => /was unavailable/.test(text));

/** Resolves when nothing of an outage is left to be told, and everything stands in Slack. */
async function allTold(world: RecapWorld): Promise<void> {
  const left = async () => {
    const { open } = await world.outages.state();
    return open.length + (await pendingOf(world.client, world.key, "recap", "notice"));
  };
  await until(() => left()).toBe(0);
}

/** How often its end was said, alone or with others. */
function timesTold(world: TestWorld, id: string): number {
  const payloads = world.slack.messages().map(({ metadata }) => metadata?.event_payload ?? {});
  return payloads.filter((payload) => {
    const { request, said, covers = "", tells = "" } = payload as Record<string, string>;
    const all = [said, ...covers.split(" ")];
    const isOwn = request === id && (all.includes("result") || said === "unknown");
    return isOwn || tells.split(" ").includes(id);
  }).length;
}

const ended = (world: TestWorld, count: number) =>
  until(async () => {
    const requests = await world.store.getMany(await world.store.recentIds({}, 50));
    expect(requests.filter(({ final, state }) => final || state === "unknown")).toHaveLength(count);
    return true;
  });

describe.concurrent("after Slack was away", () => {
  it("each result is said once, then one recap per channel tells what ran, what did not and what nobody knows", async () => {
    await using world = await startAttentive({ roles: ["all", "worker", "gateway"] });
    world.compute.weather({ match: "POST /v1/vms/*/snapshot*", lost: "before" });
    world.compute.weather({ match: "GET /v1/vms/vm-staging-web-1", status: 503 });
    slackGoes(world);
    await world.olivia.types("ops", "/vm restart payments/web-2");
    await world.olivia.types("ops", "/vm restart payments/db-1");
    await world.olivia.types("ops", "/vm snapshot payments/web-1 before-the-storm");
    await world.olivia.types("ops", "/vm restart staging/web-1");
    await world.olivia.types("status", "/vm start ml/gpu-1");
    await world.olivia.types("status", "/vm restart vault/vault-1");
    await ended(world, 4);
    await passQuiet(world);
    await passStart(world, "vm-staging-web-1");
    await ended(world, 6);
    await isAway(world, "slack");
    expect(recapsIn(world, "ops")).toEqual([]);
    world.slack.weather.clear();
    await hears(world.ada, "ops", /Slack was unavailable/);
    await hears(world.ada, "status", /Slack was unavailable/);
    await allTold(world);
    const [ops, status] = [recapsIn(world, "ops"), recapsIn(world, "status")];
    expect([ops.length, status.length]).toEqual([1, 1]);
    const requests = await world.settled();
    const ids = new Map(
      requests.map(({ record }) => [
        `${record.target.projectName} ${record.target.name}`,
        record.id,
      ]),
    );
    expect(wordsOf(ops[0] as SeenMessage).split("\n")).toEqual([
      expect.stringMatching(
        /^Slack was unavailable [\d:]+ [AP]M UTC–[\d:]+ [AP]M UTC \([^)]+\)\. Meanwhile: 2 requests ran, 1 did not, 1 outcome unknown\.$/,
      ),
      `❓ olivia asked for the snapshot of payments/web-1 as before-the-storm: outcome unknown (reads show RUNNING, which proves neither outcome). Check it, then record on its message what happened. · ${ids.get("payments web-1")}`,
      expect.stringMatching(
        /^❌ olivia asked for the restart of staging\/web-1, but it expired before it started: .*\. Again: \/vm restart staging\/web-1 · r-\w+$/,
      ),
      expect.stringMatching(/^✅ olivia restarted (web-2|db-1) in .* · r-\w+$/),
      expect.stringMatching(/^✅ olivia restarted (web-2|db-1) in .* · r-\w+$/),
    ]);
    expect(wordsOf(status[0] as SeenMessage)).toMatch(/Meanwhile: 2 requests ran\.\n/);
    for (const { record } of requests) expect(timesTold(world, record.id), record.id).toBe(1);
    // Nobody is called a second time
    expect(JSON.stringify([ops, status])).not.toContain("<@");
    for (const channel of ["ops", "status"]) {
      const { messages } = world.ada.seesChannel(channel);
      const [recap] = recapsIn(world, channel);
      const results = messages.filter(({ text }) => text.includes("<@U0OLIVIA>"));
      for (const { ts } of results) expect(Number(ts)).toBeLessThan(Number(recap?.ts));
    }
  });

  it("nothing is told of a hiccup, nor of an outage in which nobody asked for anything; else it is told once, though processes die before saying it and before noting that", async () => {
    const dies = { recap: 1, recapped: 3 };
    await using world = await startAttentive({
      roles: ["all", "worker"],
      async at(point) {
        if (point !== "recap" && point !== "recapped") return;
        if (dies[point] === 0) return;
        dies[point] -= 1;
        throw new Error(`dead at ${point}`);
      },
    });
    await world.olivia.types("ops", "/vm restart web-2");
    await world.settled();
    world.slack.weather.add({ method: "chat.postMessage", kind: "lost-before", times: 1 });
    await world.olivia.types("ops", "/vm restart db-1");
    await world.settled();
    // Every process may know of the answer later than of the next failure
    await until(() => world.client.exists(world.key("outages", "seen", "slack"))).toBe(0);
    slackGoes(world);
    await world.ada.types("ops", "/gatehouse freeze lunch");
    await isAway(world, "slack");
    world.slack.weather.clear();
    await hears(world.ada, "audit", /froze all changes/);
    await allTold(world);
    for (const channel of ["ops", "status", "audit"]) expect(recapsIn(world, channel)).toEqual([]);
    await world.ada.types("ops", "/gatehouse status");
    await hears(world.ada, "ops", /Outages: none now; Slack was away for \d+ .+, until \d+ .+ ago/);
    await world.ada.types("ops", "/gatehouse thaw");
    await hears(world.ada, "ops", /Changes are allowed again/);

    slackGoes(world);
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await isAway(world, "slack");
    world.slack.weather.clear();
    await hears(world.ada, "ops", /Slack was unavailable[\s\S]*Meanwhile: 1 request ran/);
    await allTold(world);
    expect(dies).toEqual({ recap: 0, recapped: 0 });
    expect(recapsIn(world, "ops")).toHaveLength(1);
  });
});

describe.concurrent("after Redis was away", () => {
  it("what was refused is listed once, in words that can be typed again; reads were answered", async () => {
    await using redis = await privateRedis();
    await using world = await startAttentive({
      policy: policyWith({ timing: { outage: "600ms" } }),
      redisUrl: redis.url,
      roles: ["all", "gateway"],
    });
    await world.olivia.types("ops", "/vm list");
    await hears(world.olivia, "ops", /8 VMs/);
    await redis.kill();
    const { acked } = await world.olivia.types("ops", "/vm restart payments/web-2");
    expect(acked).toBe(true);
    await hears(world.olivia, "ops", /Redis is down: nothing was done/);
    await world.olivia.types("ops", "/vm show payments/web-2");
    await hears(
      world.olivia,
      "ops",
      /web-2 is RUNNING[\s\S]*Redis is unavailable: this answer was read without Redis/,
    );
    await world.olivia.types("ops", "/gatehouse jobs");
    await hears(world.olivia, "ops", /Redis doesn't answer, and \/gatehouse jobs needs it/);
    await world.olivia.types("status", "/vm restart vault/vault-1");
    // Until it counts as an outage
    const newest = () => wordsOf(world.olivia.seesChannel("ops").messages.at(-1) as SeenMessage);
    await until(async () => {
      await world.olivia.types("ops", "/gatehouse status");
      return newest();
    }).toMatch(/Outages: Redis has been away for (?![01] s)\d+ /);
    // Not a line for each that complained: one of each process
    const complaints = world.lines.filter((line) => /"level":"(warn|error)"/.test(line));
    const about = complaints.map((line) => (JSON.parse(line) as { event: string }).event);
    expect(about.filter((event) => event !== "redis.storage")).toEqual([
      "redis.lost",
      "redis.lost",
    ]);
    const port = world.processes[0]?.opsPort;
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(page).toMatch(/^gatehouse_redis_up 0$/m);
    expect(page).not.toMatch(/^gatehouse_(frozen|open_requests)/m);
    await redis.start();
    const recap = await hears(world.vera, "ops", /Redis was unavailable/);
    expect(wordsOf(recap)).toMatch(/Affected here: 1 did not\./);
    expect(wordsOf(recap)).toContain(
      "❌ /vm restart payments/web-2 from olivia was refused: nothing was done.",
    );
    expect(wordsOf(recap)).not.toMatch(/show|jobs|status/);
    await hears(world.vera, "status", /❌ \/vm restart vault\/vault-1/);
    await until(() => world.client.ping());
    await allTold(world);
    expect(recapsIn(world, "ops")).toHaveLength(1);
    expect(recapsIn(world, "status")).toHaveLength(1);
    expect(world.compute.writes()).toEqual([]);
    const backs = () => world.lines.filter((line) => line.includes('"event":"redis.back"')).length;
    await until(() => backs()).toBe(2);
  });
});

describe.concurrent("after the service was away", () => {
  it("tells what waited for it and what gave up; meanwhile lists and cards say how old they are", async () => {
    // What runs when it is back has six times this to end
    await using world = await startAttentive({ policy: policyWith({ timing: { outage: "5s" } }) });
    await world.olivia.types("ops", "/vm list");
    await hears(world.olivia, "ops", /8 VMs/);
    world.compute.weather({ match: "*", lost: "before" });
    await world.olivia.types("ops", "/vm restart payments/web-2");
    await hears(world.olivia, "ops", /Waiting: the compute service can't be reached/);
    await isAway(world, "service");
    await world.olivia.types("ops", "/vm show payments/db-1");
    await hears(
      world.olivia,
      "ops",
      /db-1 was RUNNING when it was last read[\s\S]*compute service can't be reached\.[\s\S]*\/gatehouse status/,
    );
    await world.olivia.types("ops", "/project show payments");
    await hears(world.olivia, "ops", /payments was ACTIVE when it was last read/);
    await world.olivia.types("ops", "/vm list");
    await hears(world.olivia, "ops", /8 VMs[\s\S]*Statuses read/);
    await world.olivia.types("ops", "/gatehouse status");
    await hears(world.olivia, "ops", /Outages: The compute service has been away for/);
    await passStart(world, "vm-payments-web-2");
    await hears(world.olivia, "ops", /❌ Restart of web-2 expired before it started/);
    await world.olivia.types("status", "/vm start ml/gpu-1");
    await hears(world.olivia, "status", /Waiting: the compute service can't be reached/);
    world.compute.clear();
    const gaveUp = await hears(world.vera, "ops", /The compute service was unavailable/);
    expect(wordsOf(gaveUp)).toMatch(/Affected here: 1 did not\./);
    expect(wordsOf(gaveUp)).toContain("Again: /vm restart payments/web-2");
    const ran = await hears(world.vera, "status", /The compute service was unavailable/);
    expect(wordsOf(ran)).toMatch(/Affected here: 1 request ran\./);
    await allTold(world);
    expect(recapsIn(world, "ops")).toHaveLength(1);
  });
});
