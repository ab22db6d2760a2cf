import { expect, it } from "vitest";
import { createNotices } from "../../src/core/deliver/notices.ts";
import { silentLog } from "../../src/log/log.ts";
import { card } from "../../src/messages/card.ts";
import { md } from "../../src/messages/markdown.ts";
import { patiently } from "../../src/redis/redis.ts";
import { createWeb } from "../../src/slack/web.ts";
import { postIn } from "../../src/talk/answer.ts";
import { startMessaging } from "../support/start-delivery.ts";
import { until } from "../support/until.ts";

it("an answer with a button for all is posted once, though Redis fails right after the post", async () => {
  await using on = await startMessaging();
  const { slack, redis, key } = on;
  const answeredForAll = ["review:sign"];
  const notices = createNotices({ redis, key, answeredForAll: () => answeredForAll });
  let failures = 2;
  const gateway = {
    web: createWeb({ token: slack.app.botToken, apiUrl: slack.apiUrl, log: silentLog() }),
    log: silentLog(),
    contributed: { answeredForAll },
    announce: async (...args: Parameters<typeof notices.announce>) => {
      failures -= 1;
      if (failures >= 0) throw new Error("Command timed out");
      return notices.announce(...args);
    },
  };
  const sign = { label: "Sign review", action: "review:sign", value: "{}" };
  const digest = card({ title: md`Digest`, ways: [sign] });
  // An interaction is handled again while Redis fails.
  await patiently(() => postIn({ channelId: "C01OPS" }, digest, gateway));
  expect(failures).toBeLessThan(0);
  expect(slack.messages().filter(({ text }) => text === "Digest")).toHaveLength(1);
  // The button is answered in that message.
  on.deliver([notices.source]);
  await notices.answer(sign, md`Signed`);
  await until(() => JSON.stringify(slack.messages())).toContain("Signed");
  expect(slack.messages()).toHaveLength(1);
});
