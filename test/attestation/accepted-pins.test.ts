import { describe, expect, it, onTestFinished } from "vitest";
import { appraise, gateRefusal } from "../../src/attestation/appraise.ts";
import { createAcceptedPins } from "../../src/attestation/pins.ts";
import { stretchDeadlines } from "../../src/deadline.ts";
import { good } from "./reports.ts";
import { testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

const vm = { id: "vm-a", name: "a", projectId: "p" };
const pin = { values: "0a".repeat(48), request: "r-1", vm, by: "olivia" };
const record = JSON.stringify({
  move: "done",
  request: "r-1",
  pin: { vm: "vm-a", values: pin.values },
});

describe("an approved pin that isn't sealed", () => {
  it("is waited for, and then counts for nothing: the VM can't be verified, and gates stay closed", async () => {
    await using at = await testRedis();
    let found: "sealed" | "waits" = "waits";
    const accepted = createAcceptedPins({
      ...at,
      trail: { find: async () => ({ record, standing: found }), alarm: async () => undefined },
      secret: () => "xoxb-first-fake",
    });
    await at.redis.hset(at.key("pins"), "vm-a", `1-1 ${JSON.stringify(accepted.vouched(pin))}`);
    const early = accepted.of("vm-a");
    found = "sealed";
    expect(await early).toMatchObject({ standing: "kept", values: pin.values });

    found = "waits";
    stretchDeadlines(0);
    onTestFinished(() => stretchDeadlines(30));
    expect(await accepted.of("vm-a")).toMatchObject({ standing: "waits" });
    const appraisal = appraise(good({ pins: [], pinDoubt: "waits" }));
    expect(appraisal.verdict).toBe("could not verify");
    expect(appraisal.reasons[0]).toMatch(/waits to be sealed/);
    expect(gateRefusal(appraisal)).toMatch(/waits to be sealed/);
  });
});

describe("an approved pin, when the bot token is replaced", () => {
  it("counts on in processes that have had both tokens, and by them in those that have either", async () => {
    await using at = await testRedis();
    const alarms: string[] = [];
    const startWith = (token: () => string) =>
      createAcceptedPins({
        ...at,
        trail: {
          find: async () => ({ record, standing: "sealed" }),
          alarm: async (name) => void alarms.push(name),
        },
        secret: token,
      });
    let token = "xoxb-first-fake";
    const running = startWith(() => token);
    await at.redis.hset(at.key("pins"), "vm-a", `1-1 ${JSON.stringify(running.vouched(pin))}`);
    const slow = startWith(() => "xoxb-first-fake");
    token = "xoxb-second-fake";
    const restarted = startWith(() => "xoxb-second-fake");
    expect(await running.of("vm-a")).toMatchObject({ standing: "kept" });
    expect(await restarted.of("vm-a")).toMatchObject({ standing: "kept" });
    expect(await slow.of("vm-a")).toMatchObject({ standing: "kept" });
    expect(alarms).toEqual([]);
    // The token before may have leaked: what it signs from now on counts nowhere but where it is still the token
    await at.redis.hset(at.key("pins"), "vm-a", `1-1 ${JSON.stringify(slow.vouched(pin))}`);
    await until(async () => (await running.of("vm-a"))?.standing).toBe("forged");
    await at.redis.hset(at.key("pins"), "vm-a", `1-1 ${JSON.stringify(running.vouched(pin))}`);
    alarms.length = 0;
    // Of somebody who had neither nothing counts, and nothing is vouched for anew
    const before = await at.redis.hget(at.key("pins"), "vm-a");
    expect(await startWith(() => "xoxb-third-fake").of("vm-a")).toMatchObject({
      standing: "forged",
    });
    expect(alarms).toHaveLength(1);
    expect(await at.redis.hget(at.key("pins"), "vm-a")).toBe(before);
  });

  it("isn't brought back over one that was approved meanwhile", async () => {
    await using at = await testRedis();
    let token = "xoxb-first-fake";
    const other = JSON.stringify({ values: "other" });
    const running = createAcceptedPins({
      ...at,
      trail: {
        find: async () => {
          await at.redis.hset(at.key("pins"), "vm-a", `2-1 ${other}`);
          return { record, standing: "sealed" };
        },
        alarm: async () => undefined,
      },
      secret: () => token,
    });
    await at.redis.hset(at.key("pins"), "vm-a", `1-1 ${JSON.stringify(running.vouched(pin))}`);
    token = "xoxb-second-fake";
    await running.of("vm-a");
    expect(await at.redis.hget(at.key("pins"), "vm-a")).toBe(`2-1 ${other}`);
  });
});
