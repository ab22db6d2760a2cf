import type { Writable } from "node:stream";

/** The log lines that nothing took, because their reader is gone or their disk is full. */
export interface LogLoss {
  /** How many, since the start. */
  lines: number;
  /** Since when (ms). Undefined while lines are taken. */
  since: number | undefined;
}

export const noLoss = (): LogLoss => ({ lines: 0, since: undefined });

/** What may wait in memory for a reader that has stopped reading (bytes). */
const mostWaiting = 4 * 1024 * 1024;

/**
 * Writes lines to a stream that only tells what happens, so the work doesn't depend on it: a line
 * that it doesn't take, or for which too many others wait, is dropped and counted. The stream must
 * have a listener for its errors.
 */
export function createOutput(stream: Pick<Writable, "write" | "writableLength">) {
  const loss = noLoss();
  function note(isLost: boolean): void {
    loss.lines += isLost ? 1 : 0;
    loss.since = isLost ? (loss.since ?? Date.now()) : undefined;
  }
  return {
    write(line: string): void {
      if (stream.writableLength > mostWaiting) note(true);
      else stream.write(line, (error) => note(error instanceof Error));
    },
    loss: (): LogLoss => ({ ...loss }),
  };
}
