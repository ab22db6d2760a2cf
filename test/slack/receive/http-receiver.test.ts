import { createHmac } from "node:crypto";
import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import type { Live } from "../../../src/config/changing-file.ts";
import { silentLog } from "../../../src/log/log.ts";
import { createHttpReceiver } from "../../../src/slack/receive/http-receiver.ts";
import { listenLocally } from "./local-server.ts";

const secret = "a-signing-secret";
const sign = (timestamp: string, body: string | Buffer, with_ = secret) =>
  `v0=${createHmac("sha256", with_).update(`v0:${timestamp}:`).update(body).digest("hex")}`;

type Headers = Record<string, string | string[]>;

/** Our HTTP side with an app that only counts what gets through to it. */
async function startHttp(signingSecret: Live = secret) {
  const refused: string[] = [];
  const accepted: unknown[] = [];
  const http = createHttpReceiver({
    async processEvent({ body: taken, ack }) {
      accepted.push(taken);
      await ack();
    },
    signingSecret,
    log: silentLog(),
    onRefused: (reason) => void refused.push(reason),
  });
  const server = await listenLocally(
    (req, res) => void (http.route(req, res) || res.writeHead(404).end()),
  );
  const { port } = server;

  function send(
    body: string | Buffer,
    headers: Headers,
    { method = "POST", path = "/slack/events" } = {},
  ): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const sending = httpRequest(
      { port, host: "127.0.0.1", method, path, headers, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    sending.on("error", reject);
    sending.end(body);
    return promise;
  }
  function sendSigned(
    body: string | Buffer,
    headers: Headers = {},
    timestamp = String(Math.floor(Date.now() / 1000)),
  ) {
    return send(body, {
      "content-type": "application/x-www-form-urlencoded",
      "x-slack-request-timestamp": timestamp,
      "x-slack-signature": sign(timestamp, body),
      ...headers,
    });
  }
  return {
    http,
    port,
    refused,
    accepted,
    send,
    sendSigned,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const body = "command=%2Fvm&text=restart+web-1&user_id=U0OLIVIA&team_id=T01&trigger_id=1.2.3";

const flipBit = (text: string, index: number) => {
  const bytes = Buffer.from(text);
  bytes[index] = (bytes[index] ?? 0) ^ 0x01;
  return bytes.toString("latin1");
};

describe("what anybody on the internet may post to us", () => {
  it("gets through when Slack signed it, as a form or as JSON, with a charset or without", async () => {
    await using slack = await startHttp();
    for (const type of [
      "application/x-www-form-urlencoded",
      "application/x-www-form-urlencoded; charset=utf-8",
      "Application/X-WWW-Form-URLencoded;charset=UTF-8",
    ]) {
      expect(await slack.sendSigned(body, { "content-type": type })).toBe(200);
    }
    expect(
      await slack.sendSigned('{"type":"event_callback"}', {
        "content-type": "application/json; charset=utf-8",
      }),
    ).toBe(200);
    expect(slack.accepted).toHaveLength(4);
    expect(slack.accepted[1]).toMatchObject({ command: "/vm", text: "restart web-1" });
  });

  it("is answered here when Slack only asks whether somebody is there, and refused when it is no object", async () => {
    await using slack = await startHttp();
    const json = { "content-type": "application/json" };
    expect(await slack.sendSigned('{"type":"url_verification","challenge":"c"}', json)).toBe(200);
    expect(await slack.sendSigned("ssl_check=1")).toBe(200);
    for (const broken of ["{", "[]", "null", '"text"'])
      expect(await slack.sendSigned(broken, json)).toBe(400);
    expect(await slack.sendSigned("payload=%7B")).toBe(400);
    expect(slack.accepted).toEqual([]);
    expect(slack.refused).toEqual(Array.from({ length: 5 }, () => "body"));
  });

  it("is refused with another secret, without a header, or with two of one (S4)", async () => {
    await using slack = await startHttp();
    const timestamp = String(Math.floor(Date.now() / 1000));
    const good = sign(timestamp, body);
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const attempts: Headers[] = [
      {
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": sign(timestamp, body, "another-secret"),
      },
      { "x-slack-request-timestamp": timestamp },
      { "x-slack-signature": good },
      { "x-slack-request-timestamp": timestamp, "x-slack-signature": [good, good] },
      {
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": [`v0=${"0".repeat(64)}`, good],
      },
      { "x-slack-request-timestamp": [timestamp, timestamp], "x-slack-signature": good },
      { "x-slack-request-timestamp": timestamp, "x-slack-signature": `${good}, ${good}` },
      { "x-slack-request-timestamp": timestamp, "x-slack-signature": good.toUpperCase() },
      { "x-slack-request-timestamp": "NaN", "x-slack-signature": sign("NaN", body) },
    ];
    for (const headers of attempts)
      expect(await slack.send(body, { ...type, ...headers })).toBe(401);
    expect(slack.accepted).toEqual([]);
    expect(slack.refused).toEqual(attempts.map(() => "signature"));
    // Bolt answers an SSL check unsigned, and hands on nothing of it
    expect(await slack.send("ssl_check=1&command=%2Fvm&user_id=U1", type)).toBe(200);
    expect(slack.accepted).toEqual([]);
  });

  it("is refused when dated more than 300 s before now, to the second", async () => {
    await using slack = await startHttp();
    const seconds = Math.floor(Date.now() / 1000);
    expect(await slack.sendSigned(body, {}, String(seconds - 302))).toBe(401);
    expect(slack.accepted).toEqual([]);
    // The secret is right, so a clock is off. With another one nothing is known of the clock.
    expect(slack.refused).toEqual(["timestamp"]);
    const old = String(seconds - 100_000);
    const forged = { "x-slack-signature": sign(old, body, "another-secret") };
    expect(await slack.sendSigned(body, forged, old)).toBe(401);
    expect(slack.refused).toEqual(["timestamp", "signature"]);
    expect(await slack.sendSigned(body, {}, String(seconds - 298))).toBe(200);
    expect(await slack.sendSigned(body, {}, String(seconds + 298))).toBe(200);
  });

  it("is refused with any one byte of it changed: 0 accepted", async () => {
    await using slack = await startHttp();
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signed = { timestamp, signature: sign(timestamp, body), body };
    let sent = 0;
    for (const part of ["timestamp", "signature", "body"] as const) {
      for (let index = 0; index < signed[part].length; index += 1) {
        const forged = { ...signed, [part]: flipBit(signed[part], index) };
        const status = await slack.send(Buffer.from(forged.body, "latin1"), {
          "content-type": "application/x-www-form-urlencoded",
          "x-slack-request-timestamp": forged.timestamp,
          "x-slack-signature": forged.signature,
        });
        expect(status).toBe(401);
        sent += 1;
      }
    }
    expect(sent).toBe(10 + 67 + body.length);
    expect(slack.accepted).toEqual([]);
    expect(slack.refused).toHaveLength(sent);
  });

  it("is refused with one byte changed even where both are no UTF-8 and read the same", async () => {
    await using slack = await startHttp();
    const timestamp = String(Math.floor(Date.now() / 1000));
    const original = Buffer.from([...Buffer.from("text="), 0xff]);
    const forged = Buffer.from([...Buffer.from("text="), 0xfe]);
    expect(forged.toString()).toBe(original.toString());
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-slack-request-timestamp": timestamp,
    };
    expect(
      await slack.send(forged, { ...headers, "x-slack-signature": sign(timestamp, original) }),
    ).toBe(401);
  });

  it("is refused when it isn't a POST, too long, or of a type Slack never sends", async () => {
    await using slack = await startHttp();
    expect(await slack.send("", {}, { method: "GET" })).toBe(405);
    expect(await slack.sendSigned(Buffer.alloc(512 * 1024 + 1, "a"))).toBe(413);
    expect(await slack.sendSigned(body, { "content-type": "text/plain" })).toBe(400);
    expect(await slack.sendSigned(body, { "content-type": "application/json" })).toBe(400);
    expect(slack.accepted).toEqual([]);
    expect(slack.refused).toEqual(["method", "too-large", "body", "body"]);
  });

  it("is checked with the signing secret of its moment", async () => {
    let current = secret;
    await using slack = await startHttp(() => current);
    expect(await slack.sendSigned(body)).toBe(200);
    current = "the-next-secret";
    expect(await slack.sendSigned(body)).toBe(401);
    const timestamp = String(Math.floor(Date.now() / 1000));
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-slack-request-timestamp": timestamp,
      "x-slack-signature": sign(timestamp, body, current),
    };
    expect(await slack.send(body, headers)).toBe(200);
  });

  it("leaves every other path alone, and answers 503 once it is closing", async () => {
    await using slack = await startHttp();
    expect(await slack.send(body, {}, { path: "/metrics" })).toBe(404);
    slack.http.close();
    expect(await slack.sendSigned(body)).toBe(503);
  });

  it("answers Slack's check of the address", async () => {
    await using slack = await startHttp();
    expect(
      await slack.sendSigned('{"type":"url_verification","challenge":"abc"}', {
        "content-type": "application/json",
      }),
    ).toBe(200);
  });
});
