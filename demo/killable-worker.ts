import { type Killable, startKillable } from "../sandbox/killable.ts";

/** A worker of Gatehouse with this environment as a process of its own; it ends with us, whatever ended us. */
export const startKillableWorker = (
  env: Readonly<Record<string, string>>,
  onLog: (line: string) => void,
): Promise<Killable> =>
  startKillable(new URL("worker.ts", import.meta.url), {
    // A directory of its own, as every process of Gatehouse
    env: { ...env, DATA_DIR: `${env["DATA_DIR"]}-worker` },
    isReady: (line) => line.includes('"process.started"'),
    onLine: (line) => onLog(`${line}\n`),
  });
