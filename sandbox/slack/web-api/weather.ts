import { createRandom } from "../../random.ts";
import type { Fields } from "../fields.ts";

/** Something that goes wrong on Slack's side with calls of one method. */
export interface Storm {
  /** A Web API method, `response_url`, `upload`, or `*` for all. */
  method: string;
  /**
   * - `lost-after`: carried out, then the connection is cut instead of an answer
   * - `lost-before`: the connection is cut, nothing was done
   * - `rate-limited`: 429 with `retryAfter`
   * - `server-error`: `status` (default 503); carried out first when `applied`
   * - `error`: 200 with `ok: false` and `error`
   * - `hang`: no answer at all; carried out first when `applied`
   * - `slow`: carried out after `ms`
   */
  kind: "lost-after" | "lost-before" | "rate-limited" | "server-error" | "error" | "hang" | "slow";
  error?: string;
  retryAfter?: number;
  status?: number;
  ms?: number;
  applied?: boolean;
  /** How many calls it hits; without it, all until it is cleared. */
  times?: number;
  /** How likely it hits a call: 0 to 1. */
  probability?: number;
  /** Hits only calls whose arguments have these values. */
  where?: Fields;
}

/** What goes wrong, and when. The same seed and the same calls give the same weather. */
export class Weather {
  #storms: Storm[] = [];
  #random: () => number;

  constructor(seed = 1) {
    this.#random = createRandom(seed);
  }

  /** Adds a storm; returns the function that ends it. */
  add(storm: Storm): () => void {
    const mine = { ...storm };
    this.#storms.push(mine);
    return () => {
      this.#storms = this.#storms.filter((other) => other !== mine);
    };
  }

  clear(): void {
    this.#storms = [];
  }

  seed(seed: number): void {
    this.#random = createRandom(seed);
  }

  /** The storm that hits this call, if any; one of its times is used up. */
  strike(method: string, args: Fields): Storm | undefined {
    const storm = this.#storms.find(
      (one) =>
        (one.method === "*" || one.method === method) &&
        Object.entries(one.where ?? {}).every(([key, value]) => args[key] === value) &&
        (one.probability === undefined || this.#random() < one.probability),
    );
    if (storm?.times !== undefined) {
      storm.times -= 1;
      if (storm.times <= 0) this.#storms = this.#storms.filter((other) => other !== storm);
    }
    return storm;
  }
}
