/** What a person or a supervisor told this process. */
export interface Signals {
  /** Aborted by the first SIGTERM or SIGINT, with its name as the reason; a second one ends the process at once. */
  readonly stopping: AbortSignal;
  /** SIGHUP, which rereads the policy file, and SIGUSR1, which changes nothing; those before this call included. */
  onOther(listener: (signal: string) => void): void;
}

/**
 * Catches signals from now on. As process 1 of a container a process without a handler ignores SIGTERM, SIGHUP ends any
 * other, and SIGUSR1 makes Node.js open a debugger: none of them may depend on how far the start has come. Imports
 * nothing, so that it can come before everything.
 */
export function catchSignals(): Signals {
  const stopping = new AbortController();
  const early: string[] = [];
  let tell = (signal: string): void => void early.push(signal);
  const stop = (signal: string) => {
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort(signal);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", (signal) => tell(signal));
  process.on("SIGUSR1", (signal) => tell(signal));
  return {
    stopping: stopping.signal,
    onOther(listener) {
      tell = listener;
      for (const signal of early.splice(0)) listener(signal);
    },
  };
}
