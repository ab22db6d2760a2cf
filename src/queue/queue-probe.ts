/** Others take this one's probes so often only when it is stuck: each of n workers sends one a round, so by chance it is e^-15. */
const maxSilentRounds = 15;

/**
 * Liveness probe for the queue: a process out of whose queue nothing comes is stuck and must restart (workers may stop
 * silently after an outage: taskforcesh/bullmq#3185). Workers share the queue, so another one may take this one's probe: then
 * the queue moves, and only a long silence tells that this process takes no part.
 */
export function startQueueProbe(options: {
  workerId: string;
  everyMs: number;
  /** Resolves with whether the last probe still waits, taken by no one. */
  send(workerId: string): Promise<boolean>;
  /** This process takes no jobs on purpose. */
  isHeld(): boolean;
  onDead(why: string): void;
}) {
  const { everyMs } = options;
  let isHeard = true;
  let silentRounds = 0;

  async function round(): Promise<void> {
    const wasHeard = isHeard;
    // Before the send: the job may come out before it returns
    isHeard = false;
    const isStuck = options.isHeld()
      ? undefined
      : await options.send(options.workerId).catch(() => undefined);
    if (isStuck === undefined) {
      // Held, or Redis is unavailable: no reason to restart
      isHeard = true;
      return;
    }
    silentRounds = wasHeard ? 0 : silentRounds + 1;
    if (silentRounds === 0 || isHeard) return;
    const silentFor = `for ${Math.round((silentRounds * everyMs) / 1000)} s`;
    if (isStuck) options.onDead(`nothing came out of the queue ${silentFor}`);
    else if (silentRounds >= maxSilentRounds)
      options.onDead(`nothing came out of the queue here ${silentFor}, only elsewhere`);
  }
  const timer = setInterval(() => void round(), everyMs);

  return {
    /** This process took a job. */
    heard(): void {
      isHeard = true;
    },
    close: async () => clearInterval(timer),
  };
}
