import { WebSocket } from "undici";
import { describe, expect, it } from "vitest";
import { type Fields, fieldsOf } from "../../../sandbox/slack/fields.ts";
import type { SandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

const start = () => startSlack({ rateLimits: "off", app: { eventRetryDelaysMs: [0] } });

/** One Socket Mode connection that notes what it hears and acks it unless told not to. */
async function connect(
  slack: SandboxSlack,
  { acks = true, payload = {} }: { acks?: boolean; payload?: Fields } = {},
) {
  const { url } = await callApi(slack, "apps.connections.open", {}, slack.app.appToken);
  const socket = new WebSocket(String(url));
  const heard: Fields[] = [];
  const closed = new Promise<void>((resolve) => socket.addEventListener("close", () => resolve()));
  const { promise: hello, resolve: greeted } = Promise.withResolvers<void>();
  const { promise: farewell, resolve: dismissed } = Promise.withResolvers<void>();
  socket.addEventListener("message", ({ data }) => {
    const frame = fieldsOf(JSON.parse(String(data)));
    heard.push(frame);
    if (frame["type"] === "hello") greeted();
    if (frame["reason"] === "refresh_requested") dismissed();
    if (acks && typeof frame["envelope_id"] === "string")
      socket.send(JSON.stringify({ envelope_id: frame["envelope_id"], payload }));
  });
  await hello;
  return {
    url: String(url),
    socket,
    heard,
    closed,
    farewell,
    envelopes: () => heard.filter((frame) => "envelope_id" in frame),
  };
}

describe("Socket Mode", () => {
  it("greets each connection, and lets each ticket in once", async () => {
    await using slack = await start();
    const { heard, url } = await connect(slack);
    expect(heard[0]).toMatchObject({
      type: "hello",
      num_connections: 1,
      connection_info: { app_id: "A01GATEHOUSE" },
    });
    const again = new WebSocket(url);
    await new Promise((resolve) => again.addEventListener("close", resolve));
    expect(slack.socketMode.connections).toBe(1);
  });

  it("sends each envelope to any one connection, and honours the ack's payload", async () => {
    await using slack = await start();
    const both = [
      await connect(slack, { payload: { text: "hi" } }),
      await connect(slack, { payload: { text: "hi" } }),
    ];
    for (let i = 0; i < 4; i++)
      expect(await slack.person("olivia").types("ops", "/vm list")).toMatchObject({ acked: true });
    expect(both.map(({ envelopes }) => envelopes().length)).toEqual([2, 2]);
    expect(both[0]?.envelopes()[0]).toMatchObject({
      type: "slash_commands",
      accepts_response_payload: true,
      payload: { command: "/vm" },
    });
    expect(slack.person("olivia").seesChannel("ops").messages).toHaveLength(4);
  });

  it("delivers an envelope again as it was, and an unacked event in a new one", async () => {
    await using slack = await start();
    const { envelopes } = await connect(slack);
    const { deliveryId = "" } = await slack.person("olivia").types("ops", "/vm list");
    await slack.redeliver(deliveryId);
    expect(envelopes()[1]).toEqual(envelopes()[0]);
    slack.socketMode.disconnect("cut");
    await slack.until(() => slack.socketMode.connections === 0);
    const deaf = await connect(slack, { acks: false });
    slack.app.ackTimeoutMs = 50;
    expect(await slack.person("olivia").types("ops", "@gatehouse hi")).toMatchObject({
      acked: false,
      error: "operation_timeout",
    });
    await slack.until(() => deaf.envelopes().length === 2);
    const [first, second] = deaf.envelopes();
    expect(second).toMatchObject({
      payload: first?.["payload"],
      retry_attempt: 1,
      retry_reason: "timeout",
    });
    expect(second?.["envelope_id"]).not.toBe(first?.["envelope_id"]);
  });

  it("fails at once when nobody is connected", async () => {
    await using slack = await start();
    expect(await slack.person("olivia").types("ops", "/vm list")).toMatchObject({
      acked: false,
      error: "dispatch_failed",
    });
  });

  it("asks connections to go, and cuts them", async () => {
    await using slack = await start();
    const [polite, cut] = [await connect(slack), await connect(slack)];
    slack.socketMode.disconnect("warning");
    slack.socketMode.disconnect("refresh_requested");
    await polite.farewell;
    polite.socket.close(1000);
    await polite.closed;
    expect(polite.heard.slice(1)).toMatchObject([
      { type: "disconnect", reason: "warning" },
      { type: "disconnect", reason: "refresh_requested" },
    ]);
    slack.socketMode.disconnect("cut");
    await cut.closed;
    expect(slack.socketMode.connections).toBe(0);
  });

  it("carries large frames both ways", async () => {
    await using slack = await start();
    await connect(slack, {
      payload: { text: "x".repeat(39_000), response_type: "in_channel" },
    });
    await slack.person("olivia").types("ops", `/vm ${"y".repeat(70_000)}`);
    expect(slack.person("vera").seesChannel("ops").messages[0]?.text).toHaveLength(39_000);
  });
});
