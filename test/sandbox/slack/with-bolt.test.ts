import { describe, expect, it } from "vitest";
import type { SandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { button, post, words, startBoltWorld, type Transport } from "./small-bot.ts";

const textsOf = (slack: SandboxSlack, who: string, channel = "ops") =>
  slack
    .person(who)
    .seesChannel(channel)
    .messages.map(({ text }) => text);

describe.each<Transport>(["http", "socket"])("a Bolt app over %s", (transport) => {
  it("answers a slash command in its ack, to the asker alone", async () => {
    await using here = await startBoltWorld(transport, (app) => {
      app.command("/vm", ({ ack, command }) =>
        ack(`you said ${command.text} in ${command.channel_name}`),
      );
    });
    const outcome = await here.olivia.types("ops", "/vm list --all", { phone: true });
    expect(outcome).toMatchObject({ acked: true });
    expect(textsOf(here.slack, "olivia")).toEqual(["you said list —all in ops"]);
    expect(here.olivia.seesChannel("ops").messages[0]?.ephemeral).toBe(true);
    expect(textsOf(here.slack, "amir")).toEqual([]);
  });

  it("posts, edits and answers through the response URL, also where it isn't a member", async () => {
    await using here = await startBoltWorld(transport, (app) => {
      app.command("/vm", async ({ ack, client, command, respond }) => {
        await ack();
        if (command.channel_id === "C04RANDOM") {
          await respond({ response_type: "in_channel", text: "hello from outside" });
          return;
        }
        const { ts = "" } = await post(client, {
          channel: command.channel_id,
          text: `<@${command.user_id}> one`,
        });
        await client.chat.update({ channel: command.channel_id, ts, text: "two" });
        await post(client, {
          channel: command.channel_id,
          thread_ts: ts,
          text: "reply",
        });
      });
    });
    await here.olivia.types("random", "/vm list");
    await here.olivia.types("ops", "/vm list");
    const seen = await here.amir.until(({ channels }) =>
      channels.some((c) => c.name === "ops" && c.messages.length === 2),
    );
    const [first, reply] = seen.channels.find((channel) => channel.name === "ops")?.messages ?? [];
    expect(first).toMatchObject({
      text: "two",
      edited: true,
      replyCount: 1,
      author: { name: "gatehouse", isBot: true },
    });
    expect(reply).toMatchObject({ text: "reply", threadTs: first?.ts });
    expect(here.olivia.mentions()).toMatchObject([{ text: "<@U0OLIVIA> one", because: "mention" }]);
    expect(textsOf(here.slack, "amir", "random")).toEqual(["hello from outside"]);
  });

  it("hears buttons with everything around them, and replaces an ephemeral message", async () => {
    const heard: unknown[] = [];
    await using here = await startBoltWorld(transport, (app) => {
      app.command("/vm", async ({ ack, respond }) => {
        await ack();
        const confirm = {
          title: words("Sure?"),
          text: words("It restarts."),
          confirm: words("Restart"),
          deny: words("No"),
        };
        await respond({
          text: "card",
          blocks: [
            {
              type: "actions",
              block_id: "row",
              elements: [button("Restart", "restart", { value: "vm-1", confirm })],
            },
          ],
        });
      });
      app.action("restart", async ({ ack, body, action, respond }) => {
        await ack();
        heard.push({ body, action });
        await respond({ replace_original: true, text: "restarting" });
      });
    });
    await here.olivia.types("ops", "/vm show web-1");
    await here.olivia.until(({ channels }) => channels[0]?.messages[0]?.text === "card");
    await expect(here.amir.presses("Restart")).rejects.toThrow("amir sees no Restart");
    expect(await here.olivia.presses("Restart", { confirm: "no" })).toMatchObject({
      error: "confirm_denied",
    });
    expect(heard).toEqual([]);
    expect(await here.olivia.presses("Restart")).toMatchObject({ acked: true });
    await here.olivia.until(({ channels }) => channels[0]?.messages[0]?.text === "restarting");
    expect(heard).toMatchObject([
      {
        action: {
          type: "button",
          action_id: "restart",
          block_id: "row",
          value: "vm-1",
          text: { text: "Restart" },
        },
        body: {
          type: "block_actions",
          user: { id: "U0OLIVIA", username: "olivia", team_id: "T01CONF" },
          team: { id: "T01CONF", domain: "confidential" },
          channel: { id: "C01OPS", name: "ops" },
          container: { type: "message", is_ephemeral: true, channel_id: "C01OPS" },
          api_app_id: "A01GATEHOUSE",
          state: { values: {} },
        },
      },
    ]);
    await expect(here.olivia.presses("Restart")).rejects.toThrow("There are none");
  });

  it("hears mentions, and messages to itself, in threads too", async () => {
    await using here = await startBoltWorld(transport, (app) => {
      app.event("app_mention", async ({ event, client }) => {
        await post(client, {
          channel: event.channel,
          thread_ts: event.thread_ts ?? event.ts,
          text: `heard: ${event.text}`,
        });
      });
      app.message(async ({ message, say }) => {
        if ("text" in message) await say(`dm: ${message.text}`);
      });
    });
    const { ts = "" } = await here.olivia.types("ops", "look");
    expect(
      await here.amir.types("ops", "@gatehouse vm list <prod>", { threadTs: ts }),
    ).toMatchObject({ acked: true });
    await here.olivia.types("@gatehouse", "hi");
    await here.amir.until(({ channels }) => channels[0]?.messages.length === 3);
    expect(here.amir.seesChannel("ops").messages[2]).toMatchObject({
      text: "heard: <@U0GATEHOUSE> vm list &lt;prod&gt;",
      threadTs: ts,
    });
    await here.olivia.until(({ channels }) =>
      channels.some(({ name, messages }) => name === "gatehouse" && messages.length === 2),
    );
    await here.olivia.types("random", "@gatehouse are you there?");
    expect(here.olivia.sees().toasts).toMatchObject([{ error: "not_in_channel" }]);
  });

  it("uploads a picture and shows it in a block", async () => {
    await using here = await startBoltWorld(transport, (app) => {
      app.command("/vm", async ({ ack, client, command }) => {
        await ack();
        const uploaded = await client.filesUploadV2({
          file: Buffer.from("not really a png"),
          filename: "chart.png",
          title: "CPU",
          alt_text: "flat",
        });
        const id = uploaded.files[0]?.files?.[0]?.id ?? "";
        await post(client, {
          channel: command.channel_id,
          text: "chart",
          blocks: [{ type: "image", alt_text: "flat", slack_file: { id } }],
        });
        await client.filesUploadV2({
          content: "a,b",
          filename: "list.csv",
          channel_id: command.channel_id,
          initial_comment: "all",
        });
      });
    });
    await here.olivia.types("ops", "/vm metrics web-1");
    const seen = await here.olivia.until(({ channels }) => channels[0]?.messages.length === 2);
    const image = Object.values(seen.files).find(({ name }) => name === "chart.png");
    const answer = await fetch(image?.url ?? "");
    expect(answer.headers.get("content-type")).toBe("image/png");
    expect(await answer.text()).toBe("not really a png");
    expect(seen.channels[0]?.messages[1]).toMatchObject({
      text: "all",
      files: [{ name: "list.csv", mimetype: "text/csv" }],
    });
  });

  it("shows the person an error when the app doesn't ack", async () => {
    await using here = await startBoltWorld(transport, (app) => {
      app.command("/vm", () => new Promise(() => {}));
    });
    here.slack.app.ackTimeoutMs = 50;
    expect(await here.olivia.types("ops", "/vm list")).toMatchObject({
      acked: false,
      error: "operation_timeout",
    });
    expect(here.olivia.sees().toasts).toMatchObject([
      { error: "operation_timeout", text: '/vm failed with the error "operation_timeout"' },
    ]);
  });
});
