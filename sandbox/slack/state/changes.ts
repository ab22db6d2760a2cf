/**
 * Tells listeners that something changed. Changes of one turn of the event loop come as one call; `version` says how
 * many changes there have been.
 */
export class Changes {
  version = 0;
  readonly #listeners = new Set<() => void>();
  #pending = false;

  announce(): void {
    this.version += 1;
    if (this.#pending) return;
    this.#pending = true;
    setImmediate(() => {
      this.#pending = false;
      for (const listener of this.#listeners) listener();
    });
  }

  /** Returns the function that stops listening. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves with the first value of `look` that isn't undefined, looking now and after every change.
   * Rejects with what `explain` says once nothing has changed for `stillMs`, or after `longestMs`.
   */
  until<T>(look: () => T | undefined, { stillMs, longestMs }: Patience, explain: () => string) {
    return new Promise<T>((resolve, reject) => {
      const beganAt = performance.now();
      let seenVersion = this.version;
      let stop: (() => void) | undefined;
      const finish = () => {
        clearTimeout(timer);
        stop?.();
      };
      const fail = (error: unknown) => {
        finish();
        reject(error instanceof Error ? error : new Error(String(error)));
      };
      const giveUp = () => {
        const waitedMs = performance.now() - beganAt;
        if (this.version === seenVersion || waitedMs >= longestMs)
          return fail(new Error(`Waited ${seconds(waitedMs)} s: ${explain()}`));
        seenVersion = this.version;
        timer = setTimeout(giveUp, Math.min(stillMs, longestMs - waitedMs));
      };
      let timer = setTimeout(giveUp, Math.min(stillMs, longestMs));
      const attempt = () => {
        try {
          const value = look();
          if (value === undefined) return false;
          finish();
          resolve(value);
        } catch (error) {
          fail(error);
        }
        return true;
      };
      if (!attempt()) stop = this.listen(() => void attempt());
    });
  }
}

const seconds = (ms: number) => (ms < 1_000 ? ms / 1_000 : Math.round(ms / 1_000)).toString();

/** How long a wait goes on while nothing changes, and at most, in milliseconds. */
export interface Patience {
  stillMs: number;
  longestMs: number;
}

/** How whoever waits for something does it. */
export interface Waiting {
  patience: Patience;
  /** Further lines for the error of a wait in vain. */
  explain: () => string;
}

/** So long that a wait fails because something never comes, and not because a machine is slow. */
export const usualPatience: Patience = { stillMs: 60_000, longestMs: 570_000 };
