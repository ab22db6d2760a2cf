import { expect, it } from "vitest";
import { startGatehouseSlack } from "../../../demo/world.ts";
import { postMessage } from "../../../sandbox/slack/state/messages.ts";
import { silentLog } from "../../../src/log/log.ts";
import { createLookUp, metadataOf } from "../../../src/core/deliver/look-up.ts";
import { CannotTell } from "../../../src/slack/people/cannot-tell.ts";
import { createWeb } from "../../../src/slack/web.ts";

const channelId = "C01OPS";

async function looking(us = () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" })) {
  const slack = await startGatehouseSlack({ rateLimits: "off" });
  const web = createWeb({ token: slack.app.botToken, apiUrl: slack.apiUrl, log: silentLog() });
  const lookUp = createLookUp({ web, us, now: async () => Date.now(), log: silentLog() });
  const createdAt = Date.now();
  const post = (
    by: { userId: string; botId?: string },
    more: { threadTs?: string; id?: string } = {},
  ) =>
    postMessage(slack.workspace, {
      channelId,
      ...by,
      text: "Restarted web-1",
      ...(more.threadTs ? { threadTs: more.threadTs } : {}),
      ...(more.id ? { metadata: metadataOf(more.id, { key: "result" }) } : {}),
    }).ts;
  return {
    slack,
    post,
    async seek(threadTs?: string, madeAt = createdAt) {
      const subject = { kind: "request", id: "r-1", createdAt: madeAt };
      const found = await lookUp(subject, "result", { channelId, threadTs });
      return typeof found === "object" ? found.ts : found;
    },
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

const ours = { userId: "U0GATEHOUSE", botId: "B0GATEHOUSE" };
const olivia = { userId: "U0OLIVIA" };

it("a message whose answer was lost is found behind 450 others, in a channel and in a thread", async () => {
  await using here = await looking();
  const root = here.post(olivia);
  const inThread = { threadTs: root };
  for (let n = 0; n < 450; n += 1) here.post(olivia, inThread);
  expect(await here.seek(root)).toBeUndefined();
  const reply = here.post(ours, { ...inThread, id: "r-1" });
  expect(await here.seek(root)).toBe(reply);
  expect(await here.seek()).toBeUndefined();
  const post = here.post(ours, { id: "r-1" });
  for (let n = 0; n < 450; n += 1) here.post(olivia);
  expect(await here.seek()).toBe(post);
});

it("a message of a request from before Redis's clock was set back is found", async () => {
  await using here = await looking();
  const post = here.post(ours, { id: "r-1" });
  expect(await here.seek(undefined, Date.now() + 600_000)).toBe(post);
});

it("what another app wrote under its name doesn't count, or a result would never be said", async () => {
  await using here = await looking();
  here.post({ userId: "U0DEPLOYBOT", botId: "B0DEPLOYBOT" }, { id: "r-1" });
  expect(await here.seek()).toBeUndefined();
  const own = here.post(ours, { id: "r-1" });
  here.post({ userId: "U0DEPLOYBOT", botId: "B0DEPLOYBOT" }, { id: "r-1" });
  expect(await here.seek()).toBe(own);
});

it("nothing is proven while Slack hasn't said who the bot is, or doesn't answer", async () => {
  await using here = await looking(() => {
    throw new CannotTell("Slack can't be reached");
  });
  expect(await here.seek()).toBe("unsure");
  await using other = await looking();
  other.slack.weather.add({ method: "conversations.history", kind: "lost-before", times: 1 });
  expect(await other.seek()).toBe("unsure");
});

it("a refusal proves nothing, unless the place is gone or closed to the bot", async () => {
  const seekRefused = async (error: string) => {
    const web = { call: async () => ({ ok: false, kind: "refused", error, detail: [] }) as const };
    const us = () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" });
    const lookUp = createLookUp({ web, us, now: async () => Date.now(), log: silentLog() });
    return lookUp({ kind: "request", id: "r-1", createdAt: Date.now() }, "result", { channelId });
  };
  for (const error of ["missing_scope", "not_allowed_token_type", "token_revoked", "new_error"])
    expect(await seekRefused(error)).toBe("unsure");
  for (const error of ["channel_not_found", "not_in_channel", "thread_not_found"])
    expect(await seekRefused(error)).toBeUndefined();
});
