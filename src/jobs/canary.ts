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
  let sentAt: number | undefined;
  let isHeard = true;

  const timer = setInterval(() => {
    if (sentAt !== undefined && !isHeard) {
      options.onDead(
        `nothing came out of the queue for ${Math.round((performance.now() - sentAt) / 1000)} s`,
      );
      return;
    }
    options.send(options.workerId).then(
      () => {
        sentAt = performance.now();
        isHeard = false;
      },
      // Redis is away: that is known, and no reason to start anew
      () => {
        sentAt = undefined;
        isHeard = true;
      },
    );
  }, everyMs);

  return {
    sings() {
      isHeard = true;
    },
    async close() {
      clearInterval(timer);
    },
  };
}
