/**
 * Proves that the queue moves: a job goes in every so often, and when for a whole round nothing at all came out, the
 * process is stuck (workers have been seen to stop quietly after an outage: taskforcesh/bullmq#3185) and must be
 * started anew.
 */
export interface Canary {
  /** A canary's job came out of the queue, here. */
  sings(workerId: string): void;
  close(): Promise<void>;
}

export function startCanary(options: {
  workerId: string;
  everyMs: number;
  send(workerId: string): Promise<void>;
  onDead(why: string): void;
}): Canary {
  const { everyMs } = options;
  let isHeard = true;
  let silentRounds = 0;

  async function round(): Promise<void> {
    const wasHeard = isHeard;
    // Before the send: the job may come out before the send has returned
    isHeard = false;
    try {
      await options.send(options.workerId);
    } catch {
      // Redis is away: that is known, and no reason to start anew
      isHeard = true;
      return;
    }
    silentRounds = wasHeard ? 0 : silentRounds + 1;
    if (silentRounds > 0 && !isHeard) {
      options.onDead(`nothing came out of the queue for ${Math.round(everyMs / 1000)} s`);
    }
  }
  const timer = setInterval(() => void round(), everyMs);

  return {
    sings() {
      isHeard = true;
    },
    async close() {
      clearInterval(timer);
    },
  };
}
