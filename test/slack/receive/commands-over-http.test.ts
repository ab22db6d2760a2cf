import { describe, expect, it } from "vitest";
import { sentence } from "../../../src/messages/card.ts";
import { Markdown } from "../../../src/messages/markdown.ts";
import { privateRedis } from "../../support/with-redis.ts";
import { shareGateway, startGateway } from "./start-slack.ts";
import { until } from "../../support/until.ts";

const shared = shareGateway();

describe("a slash command over HTTP", () => {
  it("is acked and handed on in our words, with a response URL and a trigger", async () => {
    const { gateway } = shared;
    const outcome = await gateway.slack
      .person("olivia")
      .types("ops", "/vm restart web-1 “two words”");
    expect(outcome).toMatchObject({ acked: true, status: 200 });
    const [interaction] = await gateway.handles(1);
    expect(interaction).toMatchObject({
      kind: "command",
      text: "vm restart web-1 “two words”",
      userId: "U0OLIVIA",
      teamId: gateway.slack.workspace.team.id,
      channelId: "C01OPS",
    });
    expect(interaction?.triggerId).toBeTruthy();
    expect(interaction?.responseUrl).toBeTruthy();
  });

  it("is handled once when it is delivered three times, byte for byte; the others are repetitions (S1)", async () => {
    const { gateway } = shared;
    const first = await gateway.slack.person("olivia").types("ops", "/vm list");
    for (const _ of [1, 2]) {
      expect(await gateway.slack.redeliver(first.deliveryId ?? "")).toMatchObject({ acked: true });
    }
    await until(() => gateway.repeated).toHaveLength(2);
    await until(() => gateway.handled).toHaveLength(1);
    expect(gateway.repeated[0]?.id).toBe(gateway.handled[0]?.id);
  });

  it("is refused after five minutes, and when dated in the future (S2, S3)", async () => {
    const { gateway } = shared;
    const first = await gateway.slack.person("olivia").types("ops", "/vm list");
    await gateway.handles(1);
    const now = Math.floor(Date.now() / 1000);
    for (const atSeconds of [now - 301, now + 302, now + 3600]) {
      expect(await gateway.slack.redeliver(first.deliveryId ?? "", { atSeconds })).toMatchObject({
        acked: false,
        status: 401,
      });
    }
    expect(gateway.refused).toEqual(["timestamp", "timestamp", "timestamp"]);
    expect(gateway.repeated).toEqual([]);
  });

  it("is answered only to the asker, wherever the bot is a member or not", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: (_ask, reply) => reply.privately(sentence(new Markdown("Here you are"))),
    };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("secret", "/vm list");
    await olivia.until(() =>
      olivia
        .seesChannel("secret")
        .messages.some(({ text, ephemeral }) => ephemeral && text === "Here you are"),
    );
    expect(gateway.slack.calls("chat.postEphemeral")).toEqual([]);
  });

  it("says within the ack that Redis is down and nothing was done", async () => {
    await using redis = await privateRedis();
    await using gateway = await startGateway({ redisUrl: redis.url });
    await redis.kill();
    const olivia = gateway.slack.person("olivia");
    const outcome = await olivia.types("ops", "/vm restart web-1");
    expect(outcome).toMatchObject({ acked: true, status: 200 });
    expect(olivia.seesChannel("ops").messages.at(-1)).toMatchObject({
      ephemeral: true,
      text: "Redis is down: nothing was done. Try again in a minute.",
    });
    expect(gateway.handled).toEqual([]);
    // The person tries again once it is back, and that is done.
    await redis.start();
    await until(
      async () => (await olivia.types("ops", "/vm restart web-1"), gateway.handled.length > 0),
    );
  });

  it("gives the person a reference that is in the log when its handling crashes", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: async () => {
        throw new TypeError("a bug with <!channel> in it");
      },
    };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm list");
    await olivia.until(() => olivia.seesChannel("ops").messages.some(({ ephemeral }) => ephemeral));
    const said = olivia.seesChannel("ops").messages.at(-1)?.text ?? "";
    const reference = /[0-9a-f]{8}/.exec(said)?.[0] ?? "none";
    expect(said).not.toContain("a bug with");
    expect(
      gateway.lines.some((line) => line.includes(reference) && line.includes("a bug with")),
    ).toBe(true);
    await until(() => gateway.app.running()).toBe(0);
  });

  it("leaves no response URL, trigger or token in the log, not even at debug level", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: (_ask, reply) => reply.privately(sentence(new Markdown("Here you are"))),
    };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("status", "/vm list");
    await olivia.until(() =>
      olivia.seesChannel("status").messages.some(({ ephemeral }) => ephemeral),
    );
    await gateway.slack.redeliver(gateway.slack.deliveries("command")[0]?.id ?? "", {
      headers: { "x-slack-signature": undefined },
    });
    const log = gateway.lines.join("\n");
    const [interaction] = gateway.handled;
    expect(log).not.toBe("");
    for (const secret of [
      interaction?.responseUrl,
      interaction?.triggerId,
      gateway.slack.app.botToken,
      gateway.slack.app.signingSecret,
    ]) {
      expect(secret).toBeTruthy();
      expect(log).not.toContain(secret);
    }
    expect(log).not.toContain("/actions/");
  });

  it("is refused from another workspace or for another app, although Slack signed it", async () => {
    const { gateway } = shared;
    const { slack } = gateway;
    const send = (fields: Record<string, string>) => {
      const body = new URLSearchParams({
        command: "/vm",
        text: "list",
        user_id: "U0OLIVIA",
        channel_id: "C01OPS",
        trigger_id: `1.2.${JSON.stringify(fields)}`,
        team_id: slack.workspace.team.id,
        api_app_id: slack.app.appId,
        ...fields,
      }).toString();
      const timestamp = Math.floor(Date.now() / 1000);
      return slack.sendRaw(body, {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "x-slack-request-timestamp": String(timestamp),
        "x-slack-signature": slack.sign(timestamp, body),
      });
    };
    expect(await send({ team_id: "T0FOREIGN" })).toMatchObject({ status: 403 });
    expect(await send({ api_app_id: "A0FOREIGN" })).toMatchObject({ status: 403 });
    expect(gateway.handled).toEqual([]);
    expect(gateway.refused).toEqual(["team", "app"]);
    // The same with nothing foreign about it, and with a charset: accepted.
    expect(await send({})).toMatchObject({ status: 200 });
    expect(await gateway.handles(1)).toHaveLength(1);
  });

  it("is acked and handed on once each, when many come at once", async () => {
    const { gateway } = shared;
    const olivia = gateway.slack.person("olivia");
    const names = Array.from({ length: 30 }, (_, n) => `vm restart web-${n}`);
    const outcomes = await Promise.all(names.map((words) => olivia.types("ops", `/${words}`)));
    expect(outcomes.filter(({ acked }) => acked)).toHaveLength(30);
    const handled = await gateway.handles(30);
    const texts = handled.map((one) => ("text" in one ? one.text : one.kind));
    expect(texts.toSorted()).toEqual(names.toSorted());
  });

  it("is waited for while it is handled when the gateway closes; new ones go elsewhere", async () => {
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    await using gateway = await startGateway({ handlers: { handleInteraction: () => goOn } });
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm list");
    const closing = gateway.app.close(600_000);
    expect(await olivia.types("ops", "/vm list")).toMatchObject({ acked: false, status: 503 });
    resolve();
    expect(await closing).toBe(0);
  });
});
