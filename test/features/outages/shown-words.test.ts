import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { createInventory } from "../../../src/fleet/inventory/create-inventory.ts";
import type { Inventory } from "../../../src/fleet/inventory/inventory.ts";
import { silentLog } from "../../../src/log/log.ts";
import { recapChannel, shownWords } from "../../../src/features/outages/post-recaps.ts";
import { requestable } from "../../../src/registry/define.ts";
import { policyOf, vm } from "../../core/permit/sample.ts";
import { smallService } from "../../fleet/inventory/small-service.ts";
import { type TestRedis, testRedis } from "../../support/with-redis.ts";

/** The team `pay` has a channel, `ml` has none. #shop belongs to no team, #both to two. */
const policy = policyOf(`
teams:
  pay: { projects: ["pay", "pay-*"], channel: C0PAY }
  ml: { projects: ["ml"] }
  one: { projects: ["one"], channel: C0BOTH }
  two: { projects: ["two"], channel: C0BOTH }
`);
const projects = {
  pay: ["web-1", "web-2"],
  ml: ["gpu-1"],
  one: ["one-1"],
  two: ["two-1"],
  shop: ["web-1", "cart"],
};

let redis: TestRedis;
let inventory: Inventory;
beforeAll(async () => {
  redis = await testRedis();
  inventory = createInventory({
    ...redis,
    compute: smallService(projects),
    log: silentLog(),
    refreshMs: 60_000,
    againMs: 1_000,
  });
  await inventory.refresh();
});
afterAll(async () => {
  await inventory.close();
  await redis[Symbol.asyncDispose]();
});

const by = (over = policy) => ({
  config: { policy: over },
  inventory,
  commands: requestable(commands),
});

describe("the channel whose recap names a request", () => {
  const of = (project: string, name = project) => ({
    ...vm("db", name),
    projectId: `p-${project}`,
  });

  it.each([
    ["a team's VM, in its channel", of("pay"), "C0PAY", "C0PAY"],
    ["a team's VM, requested elsewhere: in its channel", of("pay"), "C0SHOP", "C0PAY"],
    ["no team's VM, where it was requested", of("shop"), "C0SHOP", "C0SHOP"],
    ["a VM of one of two teams that share a channel, there", of("two"), "C0BOTH", "C0BOTH"],
    ["a team's VM, requested in a direct message: there", of("pay"), "D0OLIVIA", "D0OLIVIA"],
    [
      "a VM whose project came to a team since, in that team's channel",
      of("pay", "old"),
      "C0SHOP",
      "C0PAY",
    ],
    [
      "a VM whose project was a team's, and is no one's now",
      of("shop", "pay-eu"),
      "C0PAY",
      "C0PAY",
    ],
    ["a VM of a team without a channel, where it was requested", of("ml"), "C0SHOP", "C0SHOP"],
  ])("%s", async (_what, target, asked, told) => {
    expect(await recapChannel({ target }, asked, by())).toBe(told);
  });

  it("is the one it was requested in, without teams", async () => {
    expect(await recapChannel({ target: of("pay") }, "C0SHOP", by(policyOf("{}")))).toBe("C0SHOP");
  });
});

describe("a refused command", () => {
  it.each([
    ["C0PAY", "/vm restart pay/web-1", "/vm restart pay/web-1"],
    ["C0PAY", "/vm restart web-2", "/vm restart web-2"],
    ["C0PAY", "/vm restart gpu-1", "/vm restart …"],
    ["C0PAY", "/vm restart pay/web-1, gpu-1", "/vm restart …"],
    ["C0PAY", "/vm restart nobody-has-it", "/vm restart …"],
    ["C0PAY", "/vm restart web-*", "/vm restart web-*"],
    ["C0PAY", "/vm restart gpu-*", "/vm restart …"],
    ["C0PAY", "@gatehouse vm stop v-ml-gpu-1", "@gatehouse vm stop …"],
    ["C0PAY", "/project delete pay", "/project delete pay"],
    ["C0PAY", "/project delete ml", "/project delete …"],
    ["C0PAY", "/project update pay --name pay-new", "/project update pay --name pay-new"],
    ["C0PAY", "/project update pay --name ml", "/project update …"],
    ["C0PAY", "/vm rstart gpu-1", "/…"],
    ["C0SHOP", "/vm restart cart", "/vm restart cart"],
    ["C0SHOP", "/vm restart pay/web-1", "/vm restart …"],
    ["C0BOTH", "/vm restart one-1, two-1", "/vm restart one-1, two-1"],
    ["D0OLIVIA", "/vm restart gpu-1", "/vm restart gpu-1"],
  ])("is shown in %s: %s as %s", async (channel, words, shown) => {
    expect(await shownWords(words, channel, by())).toBe(shown);
  });

  it("whole, without teams", async () => {
    const words = "/vm rstart gpu-1";
    expect(await shownWords(words, "C0PAY", by(policyOf("{}")))).toBe(words);
  });
});
