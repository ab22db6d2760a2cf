import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import type { How, Outcome, Row } from "../rows/row.ts";
import type { Order } from "./run-one.ts";

export interface Done {
  row: Row;
  outcome: Outcome;
  seconds: number;
}

/**
 * Runs rows in processes of their own, `jobs` at a time, those that must be alone afterwards. Calls `onDone` as each ends.
 * What has not begun after `budgetMs` is not run.
 */
export async function runRows(
  rows: readonly Row[],
  how: How,
  { jobs, budgetMs }: { jobs: number; budgetMs: number },
  onDone: (done: Done) => void,
): Promise<void> {
  const deadline = performance.now() + budgetMs;
  const isAlone = (row: Row) => jobs > 1 && row.alone !== undefined;
  const runners = Array.from({ length: jobs }, () => createRowRunner());
  const work = async (queue: Row[], runner: RowRunner) => {
    for (let row = queue.shift(); row !== undefined; row = queue.shift()) {
      const since = performance.now();
      const outcome =
        since > deadline ? notRun("the time was over") : await runner.run({ id: row.id, how });
      onDone({ row, outcome, seconds: (performance.now() - since) / 1000 });
    }
  };
  const together = rows.filter((row) => !isAlone(row));
  await Promise.all(runners.map((runner) => work(together, runner)));
  const alone = rows.filter(isAlone);
  await Promise.all(runners.slice(0, 1).map((runner) => work(alone, runner)));
  for (const runner of runners) runner.close();
}

export const notRun = (why: string): Outcome => ({
  holds: false,
  notRun: why,
  wrong: [],
  notes: [],
});

interface RowRunner {
  run(order: Order): Promise<Outcome>;
  close(): void;
}

/** One process that runs rows one after the other; another one takes over when it dies. */
function createRowRunner(): RowRunner {
  let child: ChildProcess | undefined;
  return {
    async run(order) {
      if (child?.connected !== true) child = fork(path.join(import.meta.dirname, "run-one.ts"));
      const running = child;
      const over = new AbortController();
      const ended = once(running, "exit", over).then(([code, signal]): Outcome => {
        const why = `the row's process ended (${String(code ?? signal)})`;
        return { holds: false, wrong: [why], notes: [why] };
      });
      const answered = once(running, "message", over).then(([outcome]) => outcome as Outcome);
      running.send(order);
      try {
        return await Promise.race([answered, ended]);
      } finally {
        for (const one of [ended, answered]) one.catch(() => undefined); // called off
        over.abort();
      }
    },
    close: () => void (child?.connected && child.disconnect()),
  };
}
