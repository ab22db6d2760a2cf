import type { Logger as SlackLogger, LogLevel as SlackLogLevel } from "@slack/web-api";
import type { LogLevel } from "../config/config.ts";
import { workNow } from "./ids.ts";
import { scrub, scrubText } from "./scrub.ts";

export { hideSecret, scrub } from "./scrub.ts";

export type Fields = Readonly<Record<string, unknown>>;

/**
 * One JSON object per line: `at`, `level`, `event`, then the fields. The event is a fixed name with dots
 * (`request.moved`), never a sentence with values in it. Secrets are removed; stacks appear at level `error` only.
 * `interaction`, `request` and `trace` are those of the work during which it was logged (ids.ts).
 */
export interface Log {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
  readonly level: LogLevel;
}

const order: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function createLog({
  level,
  base = {},
  write = (line) => void process.stdout.write(line),
}: {
  level: LogLevel;
  /** What every line has. */
  base?: Fields;
  write?: (line: string) => void;
}): Log {
  const least = order.indexOf(level);

  function say(at: LogLevel): (event: string, fields?: Fields) => void {
    if (order.indexOf(at) < least) return () => {};
    return (event, fields = {}) => {
      const body = scrub({ ...base, ...workNow()?.ids, ...fields }, { stacks: at === "error" });
      const head = { at: new Date().toISOString(), level: at, event: scrubText(event) };
      write(`${JSON.stringify(Object.assign({ ...head }, body, head))}\n`);
    };
  }

  return {
    debug: say("debug"),
    info: say("info"),
    warn: say("warn"),
    error: say("error"),
    level,
  };
}

/** A log that says nothing, for tests and one-off programs. */
export function silentLog(): Log {
  return createLog({ level: "error", write: () => {} });
}

/**
 * What Slack's clients call their logger. They print whole payloads at debug level, response URLs and trigger ids
 * included, so debug goes nowhere; of the rest only texts and error messages are kept, no objects.
 * Clients also push their own level in: ours stays as configured.
 */
export function slackLogger(log: Log): SlackLogger {
  let named = "slack";
  const say =
    (write: Log["info"]) =>
    (...parts: readonly unknown[]): void => {
      const texts = parts.map((part) => (part instanceof Error ? part.message : part));
      const text = texts.filter((part) => typeof part === "string").join(" ");
      const failure = parts.find((part) => part instanceof Error);
      write("slack.client", {
        client: named,
        text: scrubText(text).slice(0, 500),
        ...(failure && { error: failure }),
      });
    };
  return {
    debug: () => {},
    info: say((event, fields) => log.debug(event, fields)),
    warn: say((event, fields) => log.warn(event, fields)),
    error: say((event, fields) => log.error(event, fields)),
    setLevel: () => {},
    // its enum has our four words, and importing it for real would load the whole client
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment, typescript/no-unsafe-type-assertion
    getLevel: () => log.level as SlackLogLevel,
    setName: (name) => {
      named = name;
    },
  };
}
