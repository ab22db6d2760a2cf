import { describe, expect, it } from "vitest";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

const start = () => startSlack({ rateLimits: "off" });
const post = "chat.postMessage";

describe("the Web API", () => {
  it("refuses unknown methods, missing and wrong tokens, and missing scopes", async () => {
    await using slack = await start();
    expect(await callApi(slack, "chat.shout")).toMatchObject({
      ok: false,
      error: "unknown_method",
    });
    expect(await callApi(slack, "auth.test", {}, "")).toMatchObject({ error: "not_authed" });
    expect(await callApi(slack, "auth.test", {}, "xoxb-other")).toMatchObject({
      error: "invalid_auth",
    });
    expect(await callApi(slack, "auth.test", {}, slack.app.appToken)).toMatchObject({
      error: "not_allowed_token_type",
    });
    expect(await callApi(slack, "apps.connections.open")).toMatchObject({
      error: "not_allowed_token_type",
    });
    expect(await callApi(slack, "auth.test")).toMatchObject({
      ok: true,
      user_id: "U0GATEHOUSE",
      bot_id: "B0GATEHOUSE",
      team_id: "T01CONF",
    });
    slack.app.scopes = ["users:read"];
    expect(await callApi(slack, post, { channel: "C01OPS", text: "hi" })).toMatchObject({
      error: "missing_scope",
      needed: "chat:write",
      provided: "users:read",
    });
    slack.edit.deactivate("gatehouse");
    expect(await callApi(slack, "auth.test")).toMatchObject({ error: "account_inactive" });
  });

  it("takes JSON bodies as well as forms", async () => {
    await using slack = await start();
    const response = await fetch(`${slack.apiUrl}${post}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${slack.app.botToken}`,
        "content-type": "application/json; charset=utf-8",
      },
      body: JSON.stringify({ channel: "C01OPS", text: "hi", blocks: [{ type: "divider" }] }),
    });
    expect(await response.json()).toMatchObject({
      ok: true,
      message: { text: "hi", blocks: [{ type: "divider", block_id: expect.any(String) }] },
    });
  });

  it("posts only where the bot may", async () => {
    await using slack = await start();
    const to = (channel: string, more = {}) =>
      callApi(slack, post, { channel, text: "hi", ...more });
    expect(await to("C04RANDOM")).toMatchObject({ error: "not_in_channel" });
    expect(await to("C06SECRET")).toMatchObject({ error: "channel_not_found" });
    expect(await to("C99NONE")).toMatchObject({ error: "channel_not_found" });
    expect(await to("C01OPS", { text: "" })).toMatchObject({ error: "no_text" });
    expect(await to("C01OPS", { text: "x".repeat(40_001) })).toMatchObject({
      error: "msg_too_long",
    });
    slack.edit.archive("status");
    expect(await to("C02STATUS")).toMatchObject({ error: "is_archived" });
    slack.edit.removeBot("ops");
    expect(await to("C01OPS")).toMatchObject({ error: "not_in_channel" });
    expect(await callApi(slack, "conversations.join", { channel: "C01OPS" })).toMatchObject({
      ok: true,
      channel: { is_member: true },
    });
    expect(await to("C01OPS")).toMatchObject({ ok: true });
    expect(await to("U0VERA")).toMatchObject({ ok: true, channel: "D0VERA" });
  });

  it("un-threads a reply to a message that is gone", async () => {
    await using slack = await start();
    const { ts } = await callApi(slack, post, { channel: "C01OPS", text: "parent" });
    const threaded = { channel: "C01OPS", text: "reply", thread_ts: ts };
    expect(await callApi(slack, post, threaded)).toMatchObject({ message: { thread_ts: ts } });
    slack.edit.deleteMessage("ops", String(ts));
    expect(await callApi(slack, post, threaded)).toMatchObject({ message: { thread_ts: ts } });
    const answer = await callApi(slack, post, { ...threaded, thread_ts: "1700000000.000001" });
    expect(answer["message"]).not.toHaveProperty("thread_ts");
    const shown = slack.person("olivia").seesChannel("ops").messages;
    expect(shown.map(({ text, deleted, threadTs }) => [text, deleted, threadTs])).toEqual([
      ["This message was deleted.", true, undefined],
      ["reply", false, ts],
      ["reply", false, ts],
      ["reply", false, undefined],
    ]);
  });

  it("edits its own messages only, and drops the blocks when only text is sent", async () => {
    await using slack = await start();
    const { ts } = await callApi(slack, post, {
      channel: "C01OPS",
      text: "a",
      blocks: [{ type: "divider" }],
    });
    const update = (change: object) =>
      callApi(slack, "chat.update", { channel: "C01OPS", ts, ...change });
    expect(await update({ text: "b" })).toMatchObject({ ok: true, text: "b" });
    expect(slack.person("vera").seesChannel("ops").messages[0]).toMatchObject({
      text: "b",
      blocks: [],
      edited: true,
    });
    expect(await update({ ts: "1700000000.000001", text: "b" })).toMatchObject({
      error: "message_not_found",
    });
    expect(await update({})).toMatchObject({ error: "no_text" });
    const { ts: theirs } = await slack.person("vera").types("ops", "mine");
    expect(await update({ ts: theirs, text: "b" })).toMatchObject({ error: "cant_update_message" });
    const { message_ts } = await callApi(slack, "chat.postEphemeral", {
      channel: "C01OPS",
      user: "U0VERA",
      text: "psst",
    });
    expect(await update({ ts: message_ts, text: "b" })).toMatchObject({
      error: "message_not_found",
    });
    expect(await callApi(slack, "chat.delete", { channel: "C01OPS", ts: theirs })).toMatchObject({
      error: "cant_delete_message",
    });
    expect(await callApi(slack, "chat.delete", { channel: "C01OPS", ts })).toMatchObject({
      ok: true,
    });
    slack.edit.archive("ops");
    expect(await update({ text: "c" })).toMatchObject({ error: "is_inactive" });
  });

  it("shows an ephemeral to one person who is there", async () => {
    await using slack = await start();
    const whisper = (user: string) =>
      callApi(slack, "chat.postEphemeral", { channel: "C01OPS", user, text: `<@${user}>` });
    expect(await whisper("U0STAN")).toMatchObject({ error: "user_not_in_channel" });
    expect(await whisper("U0VERA")).toMatchObject({ ok: true });
    expect(slack.person("vera").seesChannel("ops").messages).toMatchObject([
      { text: "<@U0VERA>", ephemeral: true },
    ]);
    expect(slack.person("olivia").seesChannel("ops").messages).toEqual([]);
    expect(slack.person("vera").mentions()).toEqual([]);
  });

  it("keeps metadata for the app and finds it again", async () => {
    await using slack = await start();
    const metadata = {
      event_type: "request",
      event_payload: { request: "r-1", transition: "done" },
    };
    const { ts } = await callApi(slack, post, { channel: "C01OPS", text: "a", metadata });
    await callApi(slack, post, {
      channel: "C01OPS",
      text: "b",
      thread_ts: ts,
      metadata: { ...metadata, event_type: "reply" },
    });
    const history = (more: object) =>
      callApi(slack, "conversations.history", { channel: "C01OPS", ...more });
    expect(await history({ include_all_metadata: true })).toMatchObject({
      messages: [{ metadata, reply_count: 1 }],
    });
    expect(JSON.stringify(await history({}))).not.toContain("r-1");
    const replies = await callApi(slack, "conversations.replies", {
      channel: "C01OPS",
      ts,
      include_all_metadata: true,
    });
    expect(replies).toMatchObject({ messages: [{ ts }, { metadata: { event_type: "reply" } }] });
    expect(JSON.stringify(slack.seenBy("olivia"))).not.toContain("r-1");
    const tooLarge = { event_type: "x", event_payload: { text: "x".repeat(9000) } };
    expect(
      await callApi(slack, post, { channel: "C01OPS", text: "a", metadata: tooLarge }),
    ).toMatchObject({ error: "metadata_too_large" });
    expect(
      await callApi(slack, post, { channel: "C01OPS", text: "a", metadata: { a: 1 } }),
    ).toMatchObject({ error: "invalid_metadata_format" });
    expect(await history({ channel: "C04RANDOM" })).toMatchObject({ error: "not_in_channel" });
    expect(await history({ oldest: ts })).toMatchObject({ messages: [] });
    expect(await history({ oldest: ts, inclusive: true })).toMatchObject({ messages: [{ ts }] });
  });

  it("logs every call as it really ended, without the token", async () => {
    await using slack = await start();
    await callApi(slack, post, { channel: "C01OPS", text: "hi", token: slack.app.botToken }, "");
    await callApi(slack, post, { channel: "C99NONE", text: "hi" });
    expect(slack.calls(post)).toMatchObject([
      { ok: true, status: 200, args: { channel: "C01OPS", text: "hi" } },
      { ok: false, error: "channel_not_found" },
    ]);
    expect(slack.callCounts()).toEqual({ [post]: 2 });
    expect(JSON.stringify(slack.calls())).not.toContain("xoxb");
  });
});
