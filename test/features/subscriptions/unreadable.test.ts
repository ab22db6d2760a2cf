import { expect, it } from "vitest";
import { feedLineRecord } from "../../../src/features/subscriptions/feeds.ts";
import {
  type Subscription,
  createSubscriptions,
  subscriptionRecord,
} from "../../../src/features/subscriptions/subscriptions.ts";
import { twoTeams } from "../../core/permit/two-teams.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const subscription: Subscription = {
  channelId: "C01OPS",
  glob: "*",
  events: ["trouble", "drift"],
  by: "U0OLIVIA",
  at: 1,
};

it("a line of a feed is read whole or not at all", () => {
  expectOnlyWhole(feedLineRecord, {
    text: "*web-1* went to ERROR.",
    link: "https://example.com",
    button: {
      label: "Show",
      about: "web-1",
      action: "command:vm.show",
      value: "{}",
      style: "danger",
      confirm: { title: "Sure?", text: "It stops.", confirm: "Stop", style: "danger" },
      url: "https://example.com",
    },
  });
});

it("a subscription is read whole or not at all, and hides no other", async () => {
  expectOnlyWhole(subscriptionRecord, subscription);
  await using here = await testRedis();
  const subscriptions = createSubscriptions({
    begin: async () => undefined,
    ...here,
    config: { policy: twoTeams },
    post: async () => undefined,
  });
  await subscriptions.set(subscription);
  const broken = { channelId: "C02STATUS", glob: "web-*" };
  for (const text of garbage) {
    await here.redis.hset(here.key("subscriptions"), "C02STATUS web-*", text);
    expect(await subscriptions.all(), text).toEqual([subscription]);
  }
  await subscriptions.set({ ...subscription, ...broken });
  expect(await subscriptions.of("C02STATUS")).toMatchObject([broken]);
});
