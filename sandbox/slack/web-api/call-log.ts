import { copyOf, type Fields } from "../fields.ts";

/** One call of the Web API (or use of a response URL, or upload), as it really ended. */
export interface CallRecord {
  method: string;
  /** Without the token. */
  args: Fields;
  at: number;
  /** Whether it was carried out. The app may not have heard: see `weather`. */
  ok: boolean;
  error?: string;
  status: number;
  /** What the weather did to it. */
  weather?: string;
}

/** The ground truth of what the app asked for. */
export class CallLog {
  readonly #records: CallRecord[] = [];
  readonly #onCall: (record: CallRecord) => void;

  constructor(onCall: (record: CallRecord) => void = () => undefined) {
    this.#onCall = onCall;
  }

  add(record: CallRecord): void {
    const kept = { ...record, args: copyOf(record.args) };
    this.#records.push(kept);
    this.#onCall(kept);
  }

  /** Oldest first; only those of one method when named. */
  list(method?: string): CallRecord[] {
    return copyOf(
      this.#records.filter((record) => method === undefined || record.method === method),
    );
  }

  /** Calls that reached the sandbox, per method. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { method } of this.#records) counts[method] = (counts[method] ?? 0) + 1;
    return counts;
  }

  forget(): void {
    this.#records.length = 0;
  }
}
