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
   * Rejects after `timeoutMs` with what `explain` says then.
   */
  until<T>(look: () => T | undefined, timeoutMs: number, explain: () => string): Promise<T> {
    return new Promise((resolve, reject) => {
      let stop: (() => void) | undefined;
      const attempt = () => {
        try {
          const found = look();
          if (found === undefined) return false;
          finish();
          resolve(found);
        } catch (error) {
          finish();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        return true;
      };
      const timer = setTimeout(() => {
        finish();
        reject(new Error(explain()));
      }, timeoutMs);
      const finish = () => {
        clearTimeout(timer);
        stop?.();
      };
      if (!attempt()) stop = this.listen(() => void attempt());
    });
  }
}
