import type { LogLevel } from "../config/config.ts";
import { scrub, scrubText } from "./scrub.ts";
import { workNow } from "./traces.ts";

export { hideSecret, scrub } from "./scrub.ts";

export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Writes one JSON object per line: `at`, `level`, `event`, then the fields. The event is a fixed
 * name with dots (`request.moved`), never a sentence with values in it. Secrets are removed; stacks
 * appear at level `error` only. `interaction`, `request`, and `trace` name the work during which
 * the line was logged.
 */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  readonly level: LogLevel;
}

const order: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function createLog({
  level,
  base = {},
  write,
}: {
  level: LogLevel;
  /** Fields that every line has. */
  base?: LogFields;
  write: (line: string) => void;
}): Log {
  const least = order.indexOf(level);
  const known = scrub(base);

  function say(at: LogLevel): (event: string, fields?: LogFields) => void {
    if (order.indexOf(at) < least) return () => {};
    return (event, fields = {}) => {
      const body = scrub({ ...workNow()?.ids, ...fields }, { stacks: at === "error" });
      const head = { at: new Date().toISOString(), level: at, event: scrubText(event) };
      write(`${JSON.stringify(Object.assign({ ...head }, known, body, head))}\n`);
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

/** A log that writes nothing, for tests and one-off programs. */
export function silentLog(): Log {
  return createLog({ level: "error", write: () => {} });
}
