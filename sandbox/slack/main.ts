import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { listen } from "../listen.ts";
import { messageOf } from "../message-of.ts";
import { startPage } from "../page/page.ts";
import { answerControl } from "./controls.ts";
import { startSandboxSlack } from "./sandbox-slack.ts";
import { send } from "./web-api/answer-call.ts";
import { readBody } from "./web-api/http-body.ts";

/**
 * The sandbox Slack as its own process: prints one JSON line when ready, with where it listens and its keys.
 *
 *     node sandbox/slack/main.ts [--manifest manifest.yml] [--port 0] [--page] [--control-port 0]
 *                                [--request-url http://127.0.0.1:3000/slack/events]
 *                                [--rate-limits slack|off] [--seed 1] [--ack-timeout-ms 3000]
 */
const { values } = parseArgs({
  options: {
    manifest: { type: "string" },
    port: { type: "string", default: "0" },
    page: { type: "boolean", default: false },
    "control-port": { type: "string", default: "0" },
    "request-url": { type: "string" },
    "rate-limits": { type: "string", default: "slack" },
    seed: { type: "string", default: "1" },
    "ack-timeout-ms": { type: "string", default: "3000" },
  },
});

const slack = await startSandboxSlack({
  manifest:
    values.manifest === undefined ? undefined : parse(readFileSync(values.manifest, "utf8")),
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
const page = values.page ? await startPage({ slack }) : undefined;
const { botToken, appToken, signingSecret } = slack.app;
console.log(
  JSON.stringify({
    url: slack.url,
    apiUrl: slack.apiUrl,
    controlUrl,
    botToken,
    appToken,
    signingSecret,
    ...(page ? { pageUrl: page.url } : {}),
  }),
);

const stop = () => {
  void close();
  void page?.close();
  void slack.close();
};
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
