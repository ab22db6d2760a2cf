import type { LogLevel } from "../config/config.ts";

/** How long a line waits for others (ms). */
const gatherMs = 100;

/**
 * Lines that say what is usual are written together: each write to a pipe is a system call, and wakes whoever reads it, while
 * this process acknowledges deliveries. A warning or an error is written at once, behind all that came before it. Call the
 * returned `flush` before the process ends.
 */
export function gatherLines(write: (text: string) => void) {
  let waiting = "";
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const text = waiting;
    waiting = "";
    if (text !== "") write(text);
  }

  return {
    write(line: string, level: LogLevel): void {
      waiting += line;
      if (level === "warn" || level === "error") flush();
      else timer ??= setTimeout(flush, gatherMs).unref();
    },
    flush,
  };
}
