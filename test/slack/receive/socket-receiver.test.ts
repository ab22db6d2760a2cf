import { describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { createSocketReceiver } from "../../../src/slack/receive/socket-receiver.ts";
import { isKnownSocketRejection } from "../../../src/slack/web-answer.ts";
import { listenLocally } from "./local-server.ts";
import { startGateway } from "./start-slack.ts";
import { until } from "../../support/until.ts";

function noUnhandledRejections(): unknown[] {
  const seen: unknown[] = [];
  const note = (reason: unknown) => void seen.push(reason);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  return seen;
}

const frame = (payload: unknown) =>
  JSON.stringify({
    envelope_id: "e-1",
    type: "events_api",
    accepts_response_payload: false,
    payload,
  });

describe("Socket Mode", () => {
  it("carries commands, and answers within the ack", async () => {
    await using gateway = await startGateway({ mode: "socket" });
    expect(gateway.app.problem()).toBeUndefined();
    expect(await gateway.slack.person("olivia").types("ops", "/vm list")).toMatchObject({
      acked: true,
    });
    expect(await gateway.handles(1)).toMatchObject([{ kind: "command", text: "vm list" }]);
  });

  it("connects again at once when Slack refreshes the connection; the envelope delivered again is one ask (S7)", async () => {
    const rejections = noUnhandledRejections();
    await using gateway = await startGateway({ mode: "socket" });
    const { slack } = gateway;
    const olivia = slack.person("olivia");
    const first = await olivia.types("ops", "/vm restart web-1");
    for (const reason of ["warning", "refresh_requested", "cut"] as const) {
      const opened = slack.calls("apps.connections.open").length;
      slack.socketMode.disconnect(reason);
      await slack.until(() => slack.calls("apps.connections.open").length > opened);
      await until(() => gateway.app.problem()).toBeUndefined();
      await slack.connected(1);
      expect(await slack.redeliver(first.deliveryId ?? "")).toMatchObject({ acked: true });
    }
    await until(() => gateway.repeated.length).toBe(3);
    expect(gateway.handled).toHaveLength(1);
    expect(rejections).toEqual([]);
  });

  it("survives what would end the process: an event envelope without an event, and nonsense", async () => {
    const rejections = noUnhandledRejections();
    await using gateway = await startGateway({ mode: "socket" });
    const { slack } = gateway;
    slack.socketMode.sendFrame(
      frame({ type: "app_rate_limited", team_id: slack.workspace.team.id, minute_rate_limited: 1 }),
    );
    slack.socketMode.sendFrame(frame(null));
    slack.socketMode.sendFrame("no JSON at all");
    slack.socketMode.sendFrame('{"type":"interactive","envelope_id":"e-2"}');
    expect(await slack.person("olivia").types("ops", "/vm list")).toMatchObject({ acked: true });
    await gateway.handles(1);
    expect(rejections).toEqual([]);
    expect(gateway.lines.some((line) => line.includes("app_rate_limited"))).toBe(true);
  });

  it("goes on trying while Slack is away, says so, and can be closed in the middle of it", async () => {
    const rejections = noUnhandledRejections();
    await using gateway = await startGateway({ mode: "socket" });
    const { slack } = gateway;
    const endStorm = slack.weather.add({
      method: "apps.connections.open",
      kind: "server-error",
      status: 503,
    });
    slack.socketMode.disconnect("cut");
    await until(() => gateway.app.problem()).toBeDefined();
    await until(() => gateway.app.problem()).toMatch(/503/);
    endStorm();
    await slack.connected(1);
    await until(() => gateway.app.problem()).toBeUndefined();
    slack.weather.add({ method: "apps.connections.open", kind: "hang" });
    slack.socketMode.disconnect("cut");
    await until(() => gateway.app.problem()).toBeDefined();
    // The call that hangs ends with it
    await gateway.app.close(3_600_000);
    expect(rejections).toEqual([]);
  });

  it("says that the app token is refused, and tries ever later", async () => {
    const calls: number[] = [];
    await using server = await listenLocally((_request, response) => {
      calls.push(performance.now());
      response
        .writeHead(200, { "content-type": "application/json" })
        .end('{"ok":false,"error":"invalid_auth"}');
    });
    const apiUrl = `${server.url}/api/`;
    const taken: unknown[] = [];
    const processEvent = async (event: unknown) => void taken.push(event);
    const how = { processEvent, appToken: "xapp-1-A1-x", apiUrl, log: silentLog() };
    const socket = createSocketReceiver(how);
    const started = socket.start();
    await until(() => socket.problem()).toContain("invalid_auth");
    await until(() => calls.length).toBeGreaterThan(2);
    // At the soonest: no machine makes it sooner
    const [first = 0, , third = 0] = calls;
    expect(third - first).toBeGreaterThan(700);
    await socket.close();
    await started;
    expect(taken).toEqual([]);
  });

  it("knows the rejections that its client leaves behind from bugs of ours", () => {
    expect(isKnownSocketRejection(undefined)).toBe(true);
    expect(
      isKnownSocketRejection(
        Object.assign(new Error("x"), { code: "slack_socket_mode_send_while_not_ready_error" }),
      ),
    ).toBe(true);
    expect(isKnownSocketRejection(new TypeError("ours"))).toBe(false);
  });
});
