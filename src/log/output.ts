import type { Writable } from "node:stream";

/** The log lines that nothing took, because their reader is gone or their disk is full. */
export interface LogLoss {
  /** How many, since the start. */
  lines: number;
  /** Since when (ms). Undefined while lines are taken. */
  since: number | undefined;
}

export const noLoss = (): LogLoss => ({ lines: 0, since: undefined });

/**
 * Writes lines to a stream that only tells what happens, so the work doesn't depend on it: a line
 * that it doesn't take is dropped and counted. The stream must have a listener for its errors.
 */
export function createOutput(stream: Pick<Writable, "write">) {
  const loss = noLoss();
  return {
    write(line: string): void {
      stream.write(line, (error) => {
        loss.lines += error ? 1 : 0;
        loss.since = error ? (loss.since ?? Date.now()) : undefined;
      });
    },
    loss: (): LogLoss => ({ ...loss }),
  };
}
