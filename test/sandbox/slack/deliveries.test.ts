import { createServer, type IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { isValidSlackRequest } from "@slack/bolt";
import { readBody } from "../../../sandbox/slack/web-api/http-body.ts";
import { startSlack } from "./start-slack.ts";

interface Heard {
  headers: IncomingHttpHeaders;
  body: string;
}

/** A bare endpoint that answers with the statuses given, then 200. */
async function world(...statuses: number[]) {
  const heard: Heard[] = [];
  const server = createServer((request, response) => {
    const answer = async () => {
      heard.push({ headers: request.headers, body: (await readBody(request)).toString() });
      response.writeHead(statuses.shift() ?? 200).end();
    };
    void answer();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const slack = await startSlack({
    rateLimits: "off",
    app: { requestUrl: `http://127.0.0.1:${port}/slack/events`, eventRetryDelaysMs: [0, 1, 2] },
  });
  return {
    slack,
    heard,
    olivia: slack.person("olivia"),
    [Symbol.asyncDispose]: async () => {
      await slack.close();
      server.close();
    },
  };
}

const isValid = ({ headers, body }: Heard, signingSecret: string) =>
  isValidSlackRequest({
    signingSecret,
    body,
    headers: {
      "x-slack-signature": String(headers["x-slack-signature"]),
      "x-slack-request-timestamp": Number(headers["x-slack-request-timestamp"]),
    },
  });

describe("deliveries over HTTP", () => {
  it("are signed, and a command is a plain form", async () => {
    await using here = await world();
    expect(await here.olivia.types("ops", "/vm list “a b”")).toMatchObject({
      acked: true,
      status: 200,
    });
    const [first] = here.heard;
    if (!first) throw new Error("nothing heard");
    expect(first.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(isValid(first, here.slack.app.signingSecret)).toBe(true);
    expect(isValid(first, "another secret")).toBe(false);
    expect(isValid({ ...first, body: `${first.body} ` }, here.slack.app.signingSecret)).toBe(false);
    expect(Object.fromEntries(new URLSearchParams(first.body))).toMatchObject({
      command: "/vm",
      text: "list “a b”",
      user_id: "U0OLIVIA",
      channel_id: "C01OPS",
      channel_name: "ops",
      team_id: "T01CONF",
      is_enterprise_install: "false",
    });
  });

  it("can be repeated byte for byte, signed for another time, and forged", async () => {
    await using here = await world();
    const { deliveryId = "" } = await here.olivia.types("ops", "/vm list");
    await here.slack.redeliver(deliveryId);
    await here.slack.redeliver(deliveryId, { atSeconds: 1000 });
    await here.slack.redeliver(deliveryId, { headers: { "x-slack-signature": undefined } });
    const [first, same, old, unsigned] = here.heard;
    expect(same).toEqual(first);
    expect(old).toMatchObject({
      body: first?.body,
      headers: {
        "x-slack-request-timestamp": "1000",
        "x-slack-signature": here.slack.sign(1000, first?.body ?? ""),
      },
    });
    expect(unsigned?.headers).not.toHaveProperty("x-slack-signature");
    expect(await here.slack.sendRaw("rubbish", { "content-type": "text/plain" })).toMatchObject({
      status: 200,
    });
    expect(here.heard[4]?.body).toBe("rubbish");
  });

  it("try an event again three times, and say so", async () => {
    await using here = await world(500, 500, 500, 500);
    expect(await here.olivia.types("ops", "@gatehouse help")).toMatchObject({
      acked: false,
      status: 500,
    });
    await here.slack.until(() => here.slack.deliveries("event")[0]?.attempts.length === 4);
    expect(here.heard.map(({ headers }) => headers["x-slack-retry-num"])).toEqual([
      undefined,
      "1",
      "2",
      "3",
    ]);
    expect(here.heard[1]?.headers["x-slack-retry-reason"]).toBe("http_error");
    expect(new Set(here.heard.map(({ body }) => body)).size).toBe(1);
    expect(JSON.parse(here.heard[0]?.body ?? "")).toMatchObject({
      type: "event_callback",
      event: { type: "app_mention", text: "<@U0GATEHOUSE> help" },
      authorizations: [{ is_bot: true }],
    });
  });

  it("never try a command again: the person sees the failure", async () => {
    await using here = await world(500);
    expect(await here.olivia.types("ops", "/vm list")).toMatchObject({
      acked: false,
      error: "dispatch_failed",
      status: 500,
    });
    here.slack.app.requestUrl = "http://127.0.0.1:1/";
    expect(await here.olivia.types("ops", "/vm list")).toMatchObject({
      acked: false,
      error: "dispatch_failed",
    });
    expect(here.heard).toHaveLength(1);
    expect(here.olivia.sees().toasts).toHaveLength(2);
  });

  it("tell of user groups that change", async () => {
    await using here = await world();
    await here.slack.edit.setGroupMembers("leads", ["ada", "vera"]);
    expect(here.slack.deliveries("event").map(({ payload }) => payload["event"])).toMatchObject([
      {
        type: "subteam_members_changed",
        subteam_id: "S02LEADS",
        added_users: ["U0VERA"],
        removed_users: ["U0AMIR"],
      },
      { type: "subteam_updated", subteam: { users: ["U0ADA", "U0VERA"] } },
    ]);
  });
});
