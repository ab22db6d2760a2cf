import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LogFields, createLog, hideSecret, scrub } from "../../src/log/log.ts";
import { slackLogger } from "../../src/log/slack-logger.ts";
import { quickest } from "../support/quickest.ts";
import { inner, secretShapes as shapes, x } from "./secret-shapes.ts";

/** Every way a text can get into a line. */
const places: readonly [string, (text: string) => LogFields][] = [
  ["a field", (text) => ({ text })],
  ["a nested object", (text) => ({ a: { b: [{ c: text }] } })],
  ["a key", (text) => ({ [text]: 1 })],
  ["an error's message", (text) => ({ error: new Error(text) })],
  [
    "an error's cause",
    (text) => ({ error: new Error("outer", { cause: new Error("mid", { cause: text }) }) }),
  ],
  [
    "a cause that is an object",
    (text) => ({ error: new Error("outer", { cause: { response: { body: text } } }) }),
  ],
  ["an aggregate", (text) => ({ error: new AggregateError([new Error(text)], "many") })],
  ["a map and a set", (text) => ({ map: new Map([["a", new Set([text])]]) })],
];

function logged(write: (log: ReturnType<typeof createLog>) => void, base: LogFields = {}): string {
  let all = "";
  write(createLog({ level: "debug", base, write: (line) => (all += line) }));
  return all;
}

describe("secrets", () => {
  it.each(shapes)("are removed wherever they stand: %s", (text, secret) => {
    for (const [place, fields] of places) {
      const line = logged((log) => log.error("test", fields(text)));
      expect(line, place).not.toContain(secret);
      expect(() => JSON.parse(line), place).not.toThrow();
    }
    expect(logged((log) => log.info(text), { text })).not.toContain(secret);
  });

  it("are removed by the name of their key, whatever they look like", () => {
    const value = "plain-looking";
    const keys = [
      "token",
      "botToken",
      "SLACK_BOT_TOKEN",
      "Authorization",
      "x-api-key",
      "apiKey",
      "password",
      "client_secret",
    ];
    const more = [
      "cookie",
      "Set-Cookie",
      "response_url",
      "responseUrl",
      "trigger_id",
      "consoleUrl",
      "upload_url",
      "privateKey",
    ];
    const line = logged((log) =>
      log.info("t", { deep: Object.fromEntries([...keys, ...more].map((key) => [key, value])) }),
    );
    expect(line).not.toContain(value);
  });

  it("are removed by value once registered, URL-encoded and inside longer text too", () => {
    hideSecret("correct horse+battery");
    const line = logged((log) =>
      log.info("t", { a: "xcorrect horse+batteryx", b: "q=correct%20horse%2Bbattery" }),
    );
    expect(line).not.toMatch(/horse/);
  });

  it("never reach the log in two halves because the text was cut", () => {
    hideSecret("abcdefghij-registered");
    for (const at of [7_990, 19_990]) {
      expect(JSON.stringify(scrub(".".repeat(at) + "abcdefghij-registered"))).not.toContain(
        "abcdef",
      );
    }
  });

  it("leave Slack's reason for rejecting a token, and no other word in its place", () => {
    const said = "Slack rejected the app token (invalid_auth)";
    expect(scrub(said)).toBe(said);
    for (const word of ["invalid_auth", "correct_horse"])
      expect(scrub(`token: ${word}`)).toBe("token: [removed]");
  });

  it("leave how our sentences about a secret go on, and no other word in its place", () => {
    const whole =
      "SLACK_APP_TOKEN: is not a Slack token: the app-level token from Basic Information";
    expect(scrub(whole)).toBe(whole);
    for (const sentence of [
      "SLACK_BOT_TOKEN: Slack refuses it (invalid_auth)",
      "SLACK_BOT_TOKEN: it is a person's token, not the bot's",
      "COMPUTE_API_KEY: must be one word",
      "the API takes a bearer token in its header",
      "a proxy with basic authentication",
    ])
      expect(scrub(sentence)).toBe(sentence);
    for (const bearer of ["bearer tokens0", "Bearer token.abc", "bearer authx", "bearer abcdef"])
      expect(scrub(bearer)).toMatch(/^bearer \[removed\]$/i);
    for (const text of ["token: theis", "token:is", "token=the", "token: The", "secret: hash"])
      expect(scrub(text)).toMatch(/^(token|secret)(: ?|=)\[removed\]$/);
    expect(scrub('{"token": "is"}')).toBe('{"token": [removed]}');
    for (const credentials of ["Informations", "Information0", "Information=", "inform4tion"])
      expect(scrub(`Basic ${credentials}`)).toMatch(/^Basic \[removed\]/);
  });

  it("leave ordinary words alone", () => {
    const text =
      "vm restart web-1: RUNNING, took 34 s; see https://docs.slack.dev/reference/methods/chat.postMessage";
    expect(scrub({ text, tokenIsSet: true, count: 3 })).toEqual({
      text,
      tokenIsSet: true,
      count: 3,
    });
  });
});

describe("any value", () => {
  it("becomes JSON without cycles, getters that throw, functions or endless depth", () => {
    const loop: Record<string, unknown> = {
      big: 10n,
      at: new Date(0),
      bytes: Buffer.from("secret"),
      not: NaN,
      call: () => 1,
    };
    loop["self"] = loop;
    Object.defineProperty(loop, "bad", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    });
    expect(scrub(loop)).toEqual({
      big: "10",
      at: "1970-01-01T00:00:00.000Z",
      bytes: "[6 bytes]",
      not: "NaN",
      self: "[circular]",
      bad: "[unreadable]",
    });
  });

  it("is bounded, however large it is", () => {
    const wide = (depth: number): unknown =>
      depth === 0 ? "x" : Array.from({ length: 50 }, () => wide(depth - 1));
    expect(JSON.stringify(scrub(wide(3))).length).toBeLessThan(50_000);
    expect(String(scrub("y".repeat(1_000_000))).length).toBeLessThan(10_000);
  });

  it("never makes it throw, and the line stays one line of JSON", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withNullPrototype: true,
        }),
        (value) => {
          const line = logged((log) => log.error("any", { value }));
          expect(line.trimEnd()).not.toContain("\n");
          JSON.parse(line);
        },
      ),
    );
  });

  it("takes time linear in its size, whatever is in it", () => {
    const hostile = [
      "://",
      "xoxb-",
      "token=",
      'token="',
      "eyJ",
      "-eyJ-",
      "-----BEGIN PRIVATE KEY-----",
      "bearer ",
      "sk-",
      "@",
      "a",
    ];
    for (const piece of hostile) {
      const [short = 0, long = 0] = [20_000, 160_000].map((length) => {
        const text = piece.repeat(Math.ceil(length / piece.length));
        return quickest(() => scrub(text));
      });
      // Eight times the text takes eight times as long, not 64 times
      expect(long, piece).toBeLessThan(24 * short + 5);
    }
  });
});

describe("a log", () => {
  it("writes one JSON object per line with time, level, event and fields", () => {
    const line = JSON.parse(
      logged((log) => log.info("request.moved", { id: "r1" }), { role: "worker" }),
    ) as unknown;
    expect(line).toEqual({
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      level: "info",
      event: "request.moved",
      role: "worker",
      id: "r1",
    });
  });

  it("keeps its own fields when others are named like them", () => {
    const line: Record<string, unknown> = JSON.parse(
      logged((log) => log.warn("real", { event: "fake", level: "none", at: "never" })),
    );
    expect(line).toMatchObject({ event: "real", level: "warn" });
    expect(line["at"]).not.toBe("never");
  });

  it("says nothing below its level", () => {
    const lines: string[] = [];
    const log = createLog({ level: "warn", write: (line) => lines.push(line) });
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
    expect(lines).toHaveLength(2);
  });

  it("shows stacks of errors only, and short ones", () => {
    const error = new Error("broken");
    expect(logged((log) => log.warn("w", { error }))).not.toContain("stack");
    const line: { error: { stack: string[] } } = JSON.parse(
      logged((log) => log.error("e", { error })),
    );
    expect(line.error.stack.length).toBeLessThanOrEqual(8);
    expect(line.error.stack[0]).toContain("log.test.ts");
  });

  it("keeps of an error what is known to be harmless, and not the request it carries", () => {
    const error = Object.assign(new Error("refused"), {
      code: "ECONNREFUSED",
      status: 503,
      config: { headers: { a: "plain-key" } },
    });
    const line = logged((log) => log.warn("w", { error }));
    expect(line).toContain('"code":"ECONNREFUSED","status":503');
    expect(line).not.toContain("plain-key");
  });
});

describe("what Slack's clients log", () => {
  it("keeps texts and errors, and drops payloads and everything at debug level", () => {
    const all = logged((log) => {
      const slack = slackLogger(log);
      slack.setName("socket-mode");
      slack.setLevel(slack.getLevel());
      slack.debug("payload", { response_url: "plain-address" });
      slack.info("connected");
      slack.warn("odd envelope", { trigger: "plain-trigger" });
      slack.error(new Error(`bad ${x}b-${inner}`));
    });
    expect(all).not.toMatch(/plain-address|plain-trigger|payload/);
    expect(all).not.toContain(inner);
    const levels = [...all.matchAll(/"level":"(\w+)"/g)].map((match) => match[1]);
    expect(levels).toEqual(["debug", "warn", "error"]);
    expect(all).toContain('"client":"socket-mode","text":"odd envelope"');
  });
});
