import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { messageOf } from "../../src/errors.ts";
import { listen } from "../listen.ts";
import { answerControl } from "./controls.ts";
import { startSandboxSlack } from "./sandbox-slack.ts";
import { send } from "./web-api/answer-call.ts";
import { readBody } from "./web-api/http-body.ts";

/**
 * The sandbox Slack as its own process: prints one JSON line when ready, with where it listens and its keys.
 *
 *     node sandbox/slack/main.ts [--port 0] [--control-port 0] [--request-url http://127.0.0.1:3000/slack/events]
 *                                    [--rate-limits slack|off] [--seed 1] [--ack-timeout-ms 3000]
 */
const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "control-port": { type: "string", default: "0" },
    "request-url": { type: "string" },
    "rate-limits": { type: "string", default: "slack" },
    seed: { type: "string", default: "1" },
    "ack-timeout-ms": { type: "string", default: "3000" },
  },
});

const slack = await startSandboxSlack({
  port: Number(values.port),
  rateLimits: values["rate-limits"] === "off" ? "off" : "slack",
  weatherSeed: Number(values.seed),
  app: { requestUrl: values["request-url"], ackTimeoutMs: Number(values["ack-timeout-ms"]) },
});

const control = createServer((request, response) => {
  readBody(request)
    .then((body) => answerControl(slack, JSON.parse(body.toString())))
    .then(
      (value) => send(response, { body: { ok: true, value } }),
      (error: unknown) =>
        send(response, { body: { ok: false, error: messageOf(error) }, status: 400 }),
    );
});
const { url: controlUrl, close } = await listen(control, Number(values["control-port"]));
const { botToken, appToken, signingSecret } = slack.app;
console.log(
  JSON.stringify({
    url: slack.url,
    apiUrl: slack.apiUrl,
    controlUrl,
    botToken,
    appToken,
    signingSecret,
  }),
);

const stop = () => {
  void close();
  void slack.close();
};
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
