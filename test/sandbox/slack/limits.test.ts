import { describe, expect, it } from "vitest";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

const post = "chat.postMessage";
const channel = "C01OPS";
const section = (length: number) => ({
  type: "section",
  text: { type: "mrkdwn", text: "x".repeat(length) },
});

describe("what Slack refuses though each block is fine", () => {
  it("is a message above 12,000 characters in all blocks together, and 125 for each", async () => {
    await using slack = await startSlack({ rateLimits: "off" });
    const sent = async (...lengths: number[]) =>
      callApi(slack, post, { channel, text: "a", blocks: lengths.map(section) });
    expect(await sent(3000, 3000, 3000, 2500)).toMatchObject({ ok: true });
    expect(await sent(3000, 3000, 3000, 2501)).toMatchObject({ error: "msg_blocks_too_long" });
    const { ts } = await sent(1);
    const blocks = Array.from({ length: 50 }, () => section(200));
    expect(await callApi(slack, "chat.update", { channel, ts, text: "a", blocks })).toMatchObject({
      error: "msg_blocks_too_long",
    });
  });

  it("is an edit after the window, a reply in a locked thread or in a channel without threads", async () => {
    let now = Date.now();
    await using slack = await startSlack({ rateLimits: "off", now: () => now });
    const { ts } = await callApi(slack, post, { channel, text: "a" });
    slack.edit.setEditWindow(60_000);
    const edit = () => callApi(slack, "chat.update", { channel, ts, text: "b" });
    expect(await edit()).toMatchObject({ ok: true });
    now += 61_000;
    expect(await edit()).toMatchObject({ error: "edit_window_closed" });
    const reply = () => callApi(slack, post, { channel, text: "r", thread_ts: ts });
    expect(await reply()).toMatchObject({ ok: true });
    slack.edit.lockThread("ops", String(ts));
    expect(await reply()).toMatchObject({ error: "restricted_action_thread_locked" });
    slack.edit.setNonThreadable("ops");
    expect(await reply()).toMatchObject({ error: "restricted_action_non_threadable_channel" });
    expect(await callApi(slack, post, { channel, text: "a" })).toMatchObject({ ok: true });
  });

  it("is one message more than a workspace may send in a minute", async () => {
    let now = Date.now();
    await using slack = await startSlack({ rateLimits: "off", now: () => now });
    slack.edit.setMessageLimit(2);
    const sent = () => callApi(slack, post, { channel, text: "a" });
    expect(await sent()).toMatchObject({ ok: true });
    expect(await sent()).toMatchObject({ ok: true });
    expect(await sent()).toMatchObject({ error: "message_limit_exceeded" });
    now += 61_000;
    expect(await sent()).toMatchObject({ ok: true });
  });

  it("is a chart on the Home tab", async () => {
    await using slack = await startSlack({ rateLimits: "off" });
    const data = [{ label: "a", value: 1 }];
    const chart = {
      type: "data_visualization",
      title: "c",
      chart: { type: "bar", series: [{ name: "s", data }], axis_config: { categories: ["a"] } },
    };
    const view = { type: "home", blocks: [chart] };
    expect(await callApi(slack, "views.publish", { user_id: "U0OLIVIA", view })).toMatchObject({
      error: "invalid_arguments",
    });
    const args = { channel, text: "a", blocks: [chart] };
    expect(await callApi(slack, post, args)).toMatchObject({ ok: true });
  });
});
