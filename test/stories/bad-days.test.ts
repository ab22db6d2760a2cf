import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sentAtOf } from "../../src/core/request/stored-request.ts";
import { isFields } from "../../sandbox/slack/fields.ts";
import { mentionsOf } from "../../sandbox/slack/state/notifications.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const paths = (world: TestWorld) => world.compute.writes().map(({ path }) => path);
const restartOf = (vm: string) => `/v1/vms/vm-payments-${vm}/restart`;

describe("words that can't be run", () => {
  it("are answered with one sentence and the way out, and nothing is queued", async () => {
    await using world = await startWorld();
    const said: Record<string, string[]> = {};
    for (const words of [
      "/vm rstart web-2",
      "/vm restart web-2 --force",
      "/vm list --stauts ERROR",
      "/vm show web-2 now",
      "/vm resize web-2 --cpu 1e9 --memory 4",
      "/gatehouse nonsense",
    ]) {
      const before = world.olivia.seesChannel("ops").messages.length;
      const { acked } = await world.olivia.types("ops", words);
      expect(acked).toBe(true);
      await world.olivia.until(() => world.olivia.seesChannel("ops").messages.length > before);
      const answer = world.olivia.seesChannel("ops").messages.at(-1);
      expect(answer?.ephemeral).toBe(true);
      said[words] = answer ? wordsOf(answer).replaceAll("&lt;", "<").split("\n") : [];
    }
    expect(said).toMatchObject({
      "/vm rstart web-2": [
        "/vm has no rstart.",
        "Did you mean /vm start web-2 or /vm restart web-2?",
        "[vm start web-2]",
        "[vm restart web-2]",
      ],
      "/vm restart web-2 --force": [
        "/vm restart has no --force. Nothing was done.",
        expect.stringContaining("/vm restart <vm…"),
      ],
      "/vm list --stauts ERROR": [
        "/vm list has no --stauts. Nothing was done.",
        "Did you mean --status?",
      ],
      "/vm show web-2 now": [
        "That is one word too many: now.",
        expect.stringContaining("Example: /vm show web-1"),
      ],
      "/vm resize web-2 --cpu 1e9 --memory 4": [
        "--cpu must be a whole number from 1 to 1,000,000, in digits.",
        expect.stringContaining("--cpu CPU --memory MEMORY"),
      ],
      "/gatehouse nonsense": ["/gatehouse has no nonsense.", "/gatehouse help lists its commands."],
    });
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    expect(paths(world)).toEqual([]);
  });

  it("that name no VM get buttons for those that were probably meant; pressing one runs it", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm restart wbe-2");
    const answer = await hears(world.olivia, "ops", /There is no VM called wbe-2/);
    expect(answer.ephemeral).toBe(true);
    expect(wordsOf(answer)).toContain("[web-2 in payments]");
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    await world.olivia.presses("web-2 in payments");
    const request = await world.ended();
    expect(request.state).toBe("done");
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });
});

describe("a day on which something else is down", () => {
  it("says that nothing was done, within the ack, when Redis is gone, and goes on when it is back", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({ redisUrl: redis.url });
    await redis.kill();
    const { acked, ackMs } = await world.olivia.types("ops", "/vm restart web-2");
    expect(acked).toBe(true);
    expect(ackMs).toBeLessThan(3000);
    const answer = await hears(world.olivia, "ops", /nothing was done/i);
    expect(answer.ephemeral).toBe(true);
    expect(answer.text).toMatch(/^Redis is down: nothing was done\..*Try again in a minute\./);
    expect(paths(world)).toEqual([]);
    await redis.start();
    const goesOn = async () => {
      await world.olivia.types("ops", "/vm restart web-2");
      return world.olivia.seesChannel("ops").messages.at(-1)?.text;
    };
    await until(goesOn).not.toMatch(/Redis is down/);
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });

  it("calls a slow Redis slow, never a bug, and does what it took down although Redis answers late", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({ redisUrl: redis.url });
    const other = await connectRedis(redis.url, "commands", silentLog());
    const vms = ["payments/web-1", "web-2", "staging/web-1", "db-1"];
    const ask = async (vm: string, n: number) => {
      await pause(n * 40);
      await world.olivia.types("ops", `/vm stop ${vm}`);
    };
    const asking = vms.map(ask);
    await pause(50);
    await other.call("CLIENT", "PAUSE", "1600", "ALL");
    await Promise.all(asking);
    const texts = () => world.olivia.seesChannel("ops").messages.map(({ text }) => text);
    const unknown = () =>
      texts().filter((text) =>
        text.startsWith("Gatehouse couldn't store this and doesn't know whether Redis did."),
      );
    // Redis did, and a card appears for each, also where that wasn't known yet
    await until(async () => (await world.store.recentIds({}, 20)).length).toBe(vms.length);
    const settled = await world.settled();
    expect(unknown().length).toBeGreaterThan(0);
    expect(texts().filter((text) => /went wrong|isn't known/.test(text))).toEqual([]);
    expect(settled.map(({ state }) => state)).toEqual(vms.map(() => "done"));
    expect(world.compute.writes()).toHaveLength(settled.length);
    other.disconnect();
  });

  it("waits for the service, says so, and gives up when the command has become stale", async () => {
    await using world = await startWorld({
      // Long enough for a busy machine to show that it waits.
      policy: policyWith({ timing: { staleAfter: "4s" } }),
    });
    await world.compute.close();
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Waiting: the compute service can't be reached/);
    const request = await world.ended();
    expect(request.state).toBe("expired");
    const result = await hears(world.olivia, "ops", /<@U0OLIVIA>/);
    expect(result.threadTs).toBe(request.delivered.card?.ts);
    expect(wordsOf(result)).toMatch(/^❌ <@U0OLIVIA> it expired before it started.*\n.*again/i);
    await hears(world.olivia, "ops", /^❌ Restart of web-2 expired before it started: /);
    expect(paths(world)).toEqual([]);
    await world.olivia.types("ops", "/vm show web-2");
    await hears(world.olivia, "ops", /compute service can't be reached\.[\s\S]*\/gatehouse status/);
  });

  it("calls a slow service slow, not out of reach, and restarts once when it answers again", async () => {
    await using world = await startWorld();
    world.compute.weather({ match: "*", slowMs: 1500 });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(
      world.olivia,
      "ops",
      /Waiting: the compute service answers too slowly or not at all right now; nothing was sent/,
    );
    await world.olivia.types("ops", "/vm show web-2");
    await hears(world.olivia, "ops", /⚠️ The compute service answers too slowly or not at all\./);
    expect(paths(world)).toEqual([]);
    world.compute.clear();
    expect((await world.ended()).state).toBe("done");
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });

  it("freezes all changes when the service refuses our key, and tells who must mend it", async () => {
    await using world = await startWorld();
    world.compute.weather({ match: "POST /v1/*", status: 401, message: "key revoked" });
    await world.olivia.types("ops", "/vm restart web-2");
    const request = await world.ended();
    expect(request.state).toBe("rejected");
    await hears(world.olivia, "ops", /was not done: the compute service refused: key revoked/);
    await hears(
      world.ada,
      "audit",
      /froze all changes: the compute service rejected Gatehouse's API key \(401\)/,
    );
    world.compute.clear();
    await world.olivia.types("ops", "/vm restart db-1");
    const refusal = await hears(
      world.olivia,
      "ops",
      /All changes are frozen by Gatehouse: the compute/,
    );
    expect(refusal.ephemeral).toBe(true);
    const warnings = world.lines.filter((line) => line.includes('"event":"changes.frozen"'));
    expect(warnings.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: "warn", by: "Gatehouse", reason: expect.stringContaining("(401)") },
    ]);
    expect(paths(world)).toEqual([restartOf("web-2")]);
    await world.ada.types("ops", "/gatehouse thaw");
    await hears(world.ada, "ops", /Changes are allowed again/);
    await world.olivia.types("ops", "/vm restart db-1");
    await hears(world.olivia, "ops", /Restarted db-1/);
    expect(paths(world)).toEqual([restartOf("web-2"), restartOf("db-1")]);
  });

  it("tells the requester alone where the bot is no member, and says how to invite it", async () => {
    await using world = await startWorld();
    await world.olivia.types("random", "/vm restart web-2");
    const request = await world.ended();
    expect(request.state).toBe("done");
    const card = await hears(world.olivia, "gatehouse", /Gatehouse can't post in <#C04RANDOM>/);
    expect(wordsOf(card)).toContain("/invite @gatehouse");
    await hears(world.olivia, "gatehouse", /Restarted web-2 in/);
    expect(world.amir.seesChannel("random").messages).toEqual([]);
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });
});

describe("text from the service", () => {
  it("mentions nobody, links nowhere and breaks out of nothing, whatever a VM is called", async () => {
    await using world = await startWorld();
    const nasty = `<!channel> <@U0AMIR> \`*x*\` <https://evil.example|click> \u202egpj ${"long ".repeat(2000)}`;
    world.compute.edit.renameVm({ vm: "vm-payments-web-2", name: nasty });
    await world.olivia.types("ops", "/vm show vm-payments-web-2");
    await hears(world.olivia, "ops", /is RUNNING/);
    await world.olivia.types("ops", "/vm list");
    await hears(world.olivia, "ops", /8 VMs/);
    await world.olivia.presses("Share in channel");
    await hears(world.amir, "ops", /Shared by/);
    await world.olivia.types("ops", "/vm restart vm-payments-web-2");
    await hears(world.olivia, "ops", /<@U0OLIVIA> [^]*Sent .* read/);
    world.compute.weather({ match: "POST /v1/*", status: 400, message: nasty });
    await world.olivia.types("ops", "/vm restart db-1");
    await hears(world.olivia, "ops", /Restart of db-1 was not done/);
    await world.olivia.until(() => world.olivia.mentions().length > 1);
    for (const who of [world.amir, world.vera, world.ada]) expect(who.sees().inbox).toEqual([]);
    expect(world.olivia.mentions()).toHaveLength(2);
    const messages = world.slack.messages().map(({ text, blocks }) => ({ text, blocks }));
    expect([...mentionsOf(messages)]).toEqual(["U0OLIVIA"]);
    expect(JSON.stringify(messages)).not.toContain("\u202e");
    // Cells of a table are raw text: nothing in there is ever read as markup
    const read = JSON.stringify(messages, (_, value: unknown) =>
      isFields(value) && ["raw_text", "plain_text"].includes(String(value["type"]))
        ? undefined
        : value,
    );
    expect(read).not.toMatch(/<https:\/\/evil/);
    expect(paths(world)).toEqual([restartOf("web-2"), restartOf("db-1")]);
  });
});

describe("several hands at once", () => {
  it("restarts one VM for two people one after the other; the second one waits and sees for what", async () => {
    await using world = await startWorld({
      policy: policyWith({ operate: ["S01ONCALL", "U0AMIR"] }),
      compute: { transitionMs: 250 },
    });
    await Promise.all([
      world.olivia.types("ops", "/vm restart web-2"),
      world.amir.types("ops", "/vm restart web-2"),
    ]);
    const waiting = await hears(world.vera, "ops", /Waiting/);
    const [first, second] = (await world.settled()).toSorted((a, b) => sentAtOf(a) - sentAtOf(b));
    if (!first || !second) throw new Error("they are not both there");
    expect([first.state, second.state]).toEqual(["done", "done"]);
    expect(waiting.ts).toBe(second.delivered.card?.ts);
    // It is read right before the claim, which the lock holds up
    expect(sentAtOf(second) + 100).toBeGreaterThanOrEqual(first.changedAt);
    expect(world.compute.vm("web-2").restarts).toBe(2);
    expect(paths(world)).toEqual([restartOf("web-2"), restartOf("web-2")]);
  });

  it("restarts once when the button is pressed fifty times", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm show web-2");
    const card = await hears(world.olivia, "ops", /web-2 is RUNNING/);
    const presses = await Promise.all(
      Array.from({ length: 50 }, () => world.olivia.presses("Restart", { in: card.ts })),
    );
    expect(presses.every(({ acked }) => acked)).toBe(true);
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    const requests = await world.settled();
    expect(requests.map(({ state }) => state)).toEqual(["done"]);
    expect(paths(world)).toEqual([restartOf("web-2")]);
    await hears(world.olivia, "ops", /You already requested this|Not repeated/);
  });

  it("says what it did not repeat, and does it again by a press, once", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    await world.olivia.types("ops", "/vm restart web-2");
    const said = await hears(world.olivia, "ops", /Not repeated: you restarted web-2 \d+ s ago\./);
    expect(paths(world)).toEqual([restartOf("web-2")]);
    await world.olivia.presses("Restart again", { in: said.ts });
    await until(() => paths(world)).toEqual([restartOf("web-2"), restartOf("web-2")]);
    await world.settled();
    await world.olivia.presses("Restart again", { in: said.ts }).catch(() => undefined);
    await world.settled();
    expect(world.compute.vm("web-2").restarts).toBe(2);
  });

  it("takes a mention in a thread as a proposal: the press decides, and the result comes there", async () => {
    await using world = await startWorld();
    const { ts = "" } = await world.vera.types("ops", "web-2 doesn't answer any more");
    await world.olivia.types("ops", "@gatehouse vm restart web-2", { threadTs: ts });
    const proposal = await hears(world.olivia, "ops", /Restart web-2\?/);
    expect(proposal.ephemeral).toBe(true);
    expect(proposal.threadTs).toBe(ts);
    expect(paths(world)).toEqual([]);
    await world.olivia.presses("Restart", { in: proposal.ts });
    const request = await world.ended();
    expect(request.state).toBe("done");
    const result = await hears(world.vera, "ops", /<@U0OLIVIA> [^]*Sent .* read/);
    expect(wordsOf(result)).toMatch(/<@U0OLIVIA> (web-2 runs again|Restarted web-2)/);
    expect(result.threadTs).toBe(ts);
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });
});
