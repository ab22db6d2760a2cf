/** One call as it came in and as it ended. Never holds the key. */
export interface SandboxCall {
  n: number;
  /** Milliseconds since the epoch. */
  at: number;
  method: string;
  /** Without the query. */
  path: string;
  query: string;
  /** Path template, e.g. `/v1/vms/{vm_id}`; empty when there is no such endpoint. */
  route: string;
  body?: unknown;
  /** It changed the world; set when that happens, which may be later. */
  effect: boolean;
  /** HTTP status, or what became of the answer; undefined while there is none. */
  answer?: number | "lost" | "hung" | "cut" | undefined;
  /** Ids of the weather that struck it. */
  weather: number[];
}

export interface Journal {
  open(call: Pick<SandboxCall, "method" | "path" | "query">): SandboxCall;
  /** The call has its answer. */
  close(call: SandboxCall, answer: SandboxCall["answer"]): void;
  calls(): SandboxCall[];
  forget(): void;
  /** Resolves with the calls that fit once there are `count` of them that have their answer. */
  until(fits: (call: SandboxCall) => boolean, count: number): Promise<SandboxCall[]>;
}

/** Enough for any campaign, not enough to fill the memory of a bench. */
const mostCalls = 200_000;

export function createJournal(): Journal {
  let calls: SandboxCall[] = [];
  let n = 0;
  const waiting = new Set<() => void>();
  return {
    open(call) {
      n += 1;
      const opened: SandboxCall = {
        n,
        at: Date.now(),
        ...call,
        route: "",
        effect: false,
        weather: [],
      };
      if (calls.length >= mostCalls) calls = calls.slice(mostCalls / 2);
      calls.push(opened);
      return opened;
    },
    close(call, answer) {
      call.answer = answer;
      for (const look of waiting) look();
    },
    calls: () => [...calls],
    forget() {
      calls = [];
    },
    until: (fits, count) =>
      new Promise((resolve) => {
        const look = () => {
          const found = calls.filter((call) => call.answer !== undefined && fits(call));
          if (found.length < count) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}
