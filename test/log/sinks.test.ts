import { context, trace as tracing } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { describe, expect, it } from "vitest";
import { tellRecord } from "../../src/core/cards/tell-record.ts";
import { recordSpan } from "../../src/log/traces.ts";
import { type Log, createLog } from "../../src/log/log.ts";
import { slackLogger } from "../../src/log/slack-logger.ts";
import { errorReply } from "../../src/slack/error-reply.ts";
import { secretShapes } from "./secret-shapes.ts";

/** What a log prints while this is done with it. */
function printed(use: (log: Log) => void, base: Record<string, string> = {}): string {
  let all = "";
  use(createLog({ level: "debug", base, write: (line) => void (all += line) }));
  return all;
}

const nested = (text: string) =>
  new Error("outer", {
    cause: new AggregateError([new Error("inner", { cause: { body: text } })]),
  });

/** Every way out of Gatehouse for a text that should never have been in it. */
const sinks: readonly (readonly [string, (text: string) => string])[] = [
  ["a field of a line", (text) => printed((log) => log.info("x", { text }))],
  ["a field deep inside", (text) => printed((log) => log.warn("x", { a: [{ b: { c: text } }] }))],
  ["the name of a field", (text) => printed((log) => log.info("x", { [text]: 1 }))],
  ["the event itself", (text) => printed((log) => log.info(text))],
  ["what a log says in every line", (text) => printed((log) => log.info("x"), { text })],
  ["an error's message", (text) => printed((log) => log.error("x", { error: new Error(text) }))],
  [
    "an error's stack",
    (text) =>
      printed((log) =>
        log.error("x", {
          error: Object.assign(new Error("x"), { stack: `Error\n    at ${text}` }),
        }),
      ),
  ],
  ["the cause of a cause", (text) => printed((log) => log.error("x", { error: nested(text) }))],
  [
    "the request that a client hangs on its error",
    (text) =>
      printed((log) =>
        log.error("x", {
          error: Object.assign(new Error("x"), {
            config: { headers: { a: text } },
            response: text,
          }),
        }),
      ),
  ],
  [
    "a map and a set",
    (text) => printed((log) => log.info("x", { all: new Map([[text, new Set([text])]]) })),
  ],
  [
    "Slack's own client",
    (text) =>
      printed((log) => {
        slackLogger(log).warn(text, { text });
        slackLogger(log).error(nested(text));
        slackLogger(log).debug(text);
      }),
  ],
  [
    "the apology for a bug, and the line about it",
    (text) =>
      printed((log) => log.info("x", { said: errorReply(new Error(text), log) })) +
      JSON.stringify(
        errorReply(nested(text), createLog({ level: "error", write: () => undefined })),
      ),
  ],
  [
    "a trace",
    (text) => {
      const exporter = new InMemorySpanExporter();
      const spanProcessors = [new SimpleSpanProcessor(exporter)];
      new NodeTracerProvider({ spanProcessors }).register();
      recordSpan({ name: text, startMs: 0, endMs: 1, failed: text, attributes: { why: text } });
      tracing.disable();
      context.disable();
      return JSON.stringify(
        exporter
          .getFinishedSpans()
          .map(({ name, status, attributes }) => [name, status, attributes]),
      );
    },
  ],
  [
    "the audit trail in Slack",
    (text) =>
      tellRecord({ what: "freeze", why: text, who: text }, { person: (id) => id, vm: (id) => id })
        .value,
  ],
];

describe("a secret", () => {
  it(`leaves by none of ${sinks.length} ways in any of ${secretShapes.length} shapes`, () => {
    expect(secretShapes.length).toBeGreaterThanOrEqual(40);
    expect(sinks.length).toBeGreaterThanOrEqual(12);
    const left = secretShapes.flatMap(([text, secret]) =>
      sinks.filter(([, sink]) => sink(text).includes(secret)).map(([name]) => `${text}: ${name}`),
    );
    expect(left).toEqual([]);
  });

  it("would be found: what is no secret leaves by nearly all of them", () => {
    const shown = sinks.filter(([, sink]) => sink("ordinary words").includes("ordinary words"));
    expect(shown.length).toBeGreaterThanOrEqual(10);
  });
});
