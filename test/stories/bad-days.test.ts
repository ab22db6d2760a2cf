import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { stretchDeadlines } from "../../src/deadline.ts";
import { isFields } from "../../sandbox/slack/fields.ts";
import { mentionsOf } from "../../sandbox/slack/state/notifications.ts";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";
import { passStart } from "../support/pass-time.ts";

/** The world of the days on which only people go wrong; each test there has VMs of its own. */
let usual: TestWorld;
beforeAll(async () => {
  usual = await startWorld({
    policy: policyWith({ operate: ["S01ONCALL", "U0AMIR"] }),
    prepare({ edit }) {
      for (const name of ["one", "two", "three", "four", "five", "six", "seven"])
        edit.addVm({ project: "payments", name, id: `vm-payments-${name}` });
    },
  });
});
beforeEach(() => usual.compute.forget());
afterAll(() => usual.close());

const paths = ({ compute } = usual) => compute.writes().map(({ path }) => path);
const restartOf = (vm: string) => `/v1/vms/vm-payments-${vm}/restart`;

describe("words that can't be run", () => {
  it("are answered with one sentence and the way out, and nothing is queued", async () => {
    const world = usual;
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
        "[/vm start web-2]",
        "[/vm restart web-2]",
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

  it("get buttons for the VMs that were probably meant if they name none; pressing one runs it", async () => {
    const world = usual;
    await world.olivia.types("ops", "/vm restart wbe-2");
    const answer = await hears(world.olivia, "ops", /There is no VM called wbe-2/);
    expect(answer.ephemeral).toBe(true);
    expect(wordsOf(answer)).toContain("[web-2 in payments]");
    expect(await world.store.recentIds({}, 10)).toEqual([]);
    await world.olivia.presses("web-2 in payments", { in: answer.ts });
    const request = await world.ended();
    expect(request.state).toBe("done");
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });
});

/** Each in a world of its own, in which most of the time something is waited for. */
describe.concurrent("a day on which something else doesn't answer", () => {
  it("acknowledges while Redis is gone, says that nothing was done, and goes on when it is back", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({ redisUrl: redis.url });
    await redis.kill();
    const { acked } = await world.olivia.types("ops", "/vm restart web-2");
    expect(acked).toBe(true);
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

  it("waits for the service, says so, and gives up when the command has become stale", async () => {
    await using world = await startWorld({ pace: { sweepMs: 500 } });
    await world.compute.close();
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Waiting: the compute service can't be reached/);
    await passStart(world, "vm-payments-web-2");
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

  it("calls a silent service slow, not out of reach, and restarts once when it answers again", async () => {
    // It never answers; when it does, its answers are there long before
    await using world = await startWorld({ policy: policyWith({ timing: { httpTimeout: "3s" } }) });
    world.compute.weather({ match: "*", hang: "before" });
    await world.olivia.types("ops", "/vm restart web-2");
    await world.olivia.types("ops", "/vm show web-2");
    await hears(
      world.olivia,
      "ops",
      /Waiting: the compute service answers too slowly or not at all right now; nothing was sent/,
    );
    await hears(world.olivia, "ops", /⚠️ The compute service answers too slowly or not at all\./);
    expect(paths(world)).toEqual([]);
    world.compute.clear();
    expect((await world.ended()).state).toBe("done");
    expect(paths(world)).toEqual([restartOf("web-2")]);
  });
});

describe("a day on which something else is down", () => {
  it("calls a slow Redis slow, never a bug, and does what it took down although Redis answers late", async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({ redisUrl: redis.url });
    const { olivia, store, client } = world;
    const pid = Number(/process_id:(\d+)/.exec(await client.info("server"))?.[1]);
    const texts = () => olivia.seesChannel("ops").messages.map(({ text }) => text);
    const unknown = () =>
      texts().filter((text) =>
        text.startsWith("Gatehouse couldn't store this and doesn't know whether Redis did."),
      );
    // It answers once somebody was told, however long that takes
    process.kill(pid, "SIGSTOP");
    stretchDeadlines(1);
    onTestFinished(() => stretchDeadlines(30));
    const asking = ["staging/web-1", "db-1"].map((vm) => olivia.types("ops", `/vm stop ${vm}`));
    await until(unknown).toHaveLength(2);
    process.kill(pid, "SIGCONT");
    stretchDeadlines(30);
    await Promise.all(asking);
    // Redis did, and a card appears for each
    await until(async () => (await store.recentIds({}, 20)).length).toBe(2);
    const settled = await world.settled();
    expect(texts().filter((text) => /went wrong|isn't known/.test(text))).toEqual([]);
    expect(settled.map(({ state }) => state)).toEqual(["done", "done"]);
    expect(world.compute.writes()).toHaveLength(2);
  });

  it("freezes all changes when the service refuses our key, and tells who must mend it", async () => {
    const world = usual;
    world.compute.weather({ match: "POST /v1/*", status: 401, message: "key revoked" });
    world.compute.weather({ match: "GET /v1/projects", status: 401 });
    await world.olivia.types("ops", "/vm restart one");
    const request = await world.ended();
    expect(request.state).toBe("rejected");
    await hears(
      world.olivia,
      "ops",
      /was not done: the compute service refused, saying “key revoked/,
    );
    await hears(
      world.ada,
      "audit",
      /froze all changes: the compute service rejected Gatehouse's API key \(401\)/,
    );
    world.compute.clear();
    await world.olivia.types("ops", "/vm restart two");
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
    expect(paths(world)).toEqual([restartOf("one")]);
    await world.ada.types("ops", "/gatehouse thaw");
    await hears(world.ada, "ops", /Changes are allowed again/);
    await world.olivia.types("ops", "/vm restart two");
    await hears(world.olivia, "ops", /Restarted two/);
    expect(paths(world)).toEqual([restartOf("one"), restartOf("two")]);
  });

  it.each([
    [403, "six"],
    [401, "seven"],
  ] as const)(
    "refuses only the change that the service refuses with %i, where the key opens the rest",
    async (status, other) => {
      const world = usual;
      const message = "This server is protected against changes";
      world.compute.weather({ match: "POST /v1/*", status, message });
      await world.olivia.types("ops", "/vm restart one");
      expect((await world.ended()).state).toBe("rejected");
      await hears(
        world.olivia,
        "ops",
        /the compute service refused, saying “This server is protected/,
      );
      world.compute.clear();
      await world.olivia.types("ops", `/vm restart ${other}`);
      await hears(world.olivia, "ops", new RegExp(`Restarted ${other}`));
      expect(paths(world)).toEqual([restartOf("one"), restartOf(other)]);
    },
  );

  it("restarts a VM that the service didn't find once, while its project has it in the list", async () => {
    const world = usual;
    world.compute.weather({ match: "GET /v1/vms/:id", status: 404, times: 1 });
    await world.olivia.types("ops", "/vm restart one");
    expect((await world.ended()).state).toBe("done");
    expect(paths(world)).toEqual([restartOf("one")]);
  });

  it("tells the requester alone where the bot is no member, and says how to invite it", async () => {
    const world = usual;
    await world.olivia.types("random", "/vm restart three");
    const request = await world.ended();
    expect(request.state).toBe("done");
    const card = await hears(world.olivia, "gatehouse", /Gatehouse can't post in <#C04RANDOM>/);
    expect(wordsOf(card)).toContain("/invite @gatehouse");
    await hears(world.olivia, "gatehouse", /Restarted three in/);
    expect(world.amir.seesChannel("random").messages).toEqual([]);
    expect(paths(world)).toEqual([restartOf("three")]);
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
  it("restart one VM for two people one after the other; the second one waits and sees for what", async () => {
    const { olivia, amir, vera, compute, settled } = usual;
    const reads = { match: "GET /v1/vms/vm-payments-web-1", shownStatus: "REBOOTING" };
    const sent = compute.called("POST /v1/vms/:id/restart").then(() => compute.weather(reads));
    await Promise.all([
      olivia.types("ops", "/vm restart payments/web-1"),
      amir.types("ops", "/vm restart payments/web-1"),
    ]);
    // Both may stand in one message, which words it in its own way
    const waiting = await hears(vera, "ops", /web-1[^]*(?:Waiting: |waiting to start)/);
    // The claim alone makes the other one wait; the call follows it.
    await until(() => paths()).toEqual([restartOf("web-1")]);
    compute.clear(await sent);
    const both = (await settled()).filter(({ record }) => record.target.name === "web-1");
    expect(both.map(({ state }) => state)).toEqual(["done", "done"]);
    expect(both.map(({ delivered }) => delivered.card?.ts)).toContain(waiting.ts);
    // The service takes none while another one is under way
    expect(compute.vm("payments/web-1").restarts).toBe(2);
    expect(paths()).toEqual([restartOf("web-1"), restartOf("web-1")]);
  });

  it("restart once when the button is pressed ten times", async () => {
    const world = usual;
    await world.olivia.types("ops", "/vm show four");
    const card = await hears(world.olivia, "ops", /four is RUNNING/);
    const presses = await Promise.all(
      Array.from({ length: 10 }, () => world.olivia.presses("Restart", { in: card.ts })),
    );
    expect(presses.every(({ acked }) => acked)).toBe(true);
    await hears(world.olivia, "ops", /Restarted four in/);
    await world.settled();
    expect(await world.store.recentIds({ targetId: "vm-payments-four" }, 20)).toHaveLength(1);
    expect(paths(world)).toEqual([restartOf("four")]);
    await hears(world.olivia, "ops", /You already requested this|Not repeated/);
  });

  it("are told what Gatehouse did not repeat, and a press does it again, once", async () => {
    const world = usual;
    await world.olivia.types("ops", "/vm restart five");
    await world.ended("vm restart");
    await world.olivia.types("ops", "/vm restart five");
    const said = await hears(world.olivia, "ops", /Not repeated: you restarted five .* ago\./);
    expect(paths(world)).toEqual([restartOf("five")]);
    await world.olivia.presses("Restart again", { in: said.ts });
    await until(() => paths(world)).toEqual([restartOf("five"), restartOf("five")]);
    await world.settled();
    await world.olivia.presses("Restart again", { in: said.ts }).catch(() => undefined);
    await world.settled();
    expect(world.compute.vm("five").restarts).toBe(2);
  });

  it("find a mention in a thread taken as a proposal: the press decides, and the result comes there", async () => {
    const world = usual;
    const { ts = "" } = await world.vera.types("ops", "db-1 doesn't answer any more");
    await world.olivia.types("ops", "@gatehouse vm restart db-1", { threadTs: ts });
    const proposal = await hears(world.olivia, "ops", /Restart db-1\?/);
    expect(proposal.ephemeral).toBe(true);
    expect(proposal.threadTs).toBe(ts);
    expect(paths(world)).toEqual([]);
    await world.olivia.presses("Restart", { in: proposal.ts });
    const request = await world.ended();
    expect(request.state).toBe("done");
    const result = await hears(
      world.vera,
      "ops",
      /<@U0OLIVIA> (db-1 runs again|Restarted db-1)[^]*Sent .* read/,
    );
    expect(result.threadTs).toBe(ts);
    expect(paths(world)).toEqual([restartOf("db-1")]);
  });
});
