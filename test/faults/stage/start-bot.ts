import type { BotOptions, Rule } from "./bot.ts";
import { type Child, startChild } from "./child.ts";

export interface Hit {
  point: string;
  what: string;
  /** When we heard of it (ms). */
  at: number;
}

/** One Gatehouse process under command. */
export interface Bot extends AsyncDisposable {
  readonly pid: number;
  readonly role: string;
  /** Where Slack delivers, else where it is probed; 0 before it began. */
  readonly port: number;
  /** Where it is probed. */
  readonly opsPort: number;
  /** Where programs reach it; 0 for nowhere. */
  readonly apiPort: number;
  /** Names of the commands that change something. */
  readonly commands: readonly string[];
  /** Why it refused to start, if it did. */
  readonly refused: string | undefined;
  /** Says how it ended by itself (wedged, unhandled). */
  readonly lastWords: () => string;
  begin(): Promise<void>;
  /** Resolves when the process knows the rule. */
  arm(rule: Rule): Promise<void>;
  disarm(): void;
  /** Steps its wall clock; resolves when it has. */
  setClock: (offMs: number) => Promise<void>;
  /** Lets everything that waits at a point go on. */
  go(): void;
  readonly hits: readonly Hit[];
  /** Resolves when that point was hit (at once if it has been). */
  hit(point: string, timeoutMs?: number): Promise<Hit>;
  kill(): Promise<void>;
  /** SIGHUP: it reads its policy file anew. */
  reload(): void;
  freeze(): void;
  thaw(): void;
  isGone(): boolean;
  exited: Promise<number | string>;
  /** SIGTERM. */
  stop(): Promise<void>;
}

/** Starts one; it has loaded everything, and begins when told (`begin`). */
export async function startBot(options: BotOptions): Promise<Bot> {
  const hits: Hit[] = [];
  const listeners = new Set<() => void>();
  let port = 0;
  let opsPort = 0;
  let apiPort = 0;
  let refused: string | undefined;
  let lastWords = "";
  let armed = 0;
  let steps = 0;
  const child: Child = await startChild(
    options.script ?? "test/faults/stage/bot.ts",
    [JSON.stringify(options)],
    (line) => {
      if (typeof line["hit"] === "string")
        hits.push({ point: line["hit"], what: String(line["what"]), at: Date.now() });
      if (line["armed"] !== undefined) armed += 1;
      if (line["clockOffMs"] !== undefined) steps += 1;
      if (typeof line["started"] === "number") port = line["started"];
      if (typeof line["probes"] === "number") opsPort = line["probes"];
      if (typeof line["api"] === "number") apiPort = line["api"];
      if (typeof line["refused"] === "string") refused = line["refused"];
      if (typeof line["ends"] === "string") lastWords = line["ends"];
      for (const listener of listeners) listener();
    },
    options.nodeEnv,
  );
  void child.exited.then(() => {
    for (const listener of listeners) listener();
  });

  async function until<T>(
    wanted: () => T | undefined | false,
    what: string,
    timeoutMs: number,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const look = () => {
      const found = wanted();
      if (found !== undefined && found !== false) resolve(found);
    };
    const timer = setTimeout(
      () => reject(new Error(`no ${what} within ${timeoutMs} ms`)),
      timeoutMs,
    );
    listeners.add(look);
    look();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      listeners.delete(look);
    }
  }

  return {
    pid: child.pid,
    role: options.role,
    get port() {
      return port;
    },
    get opsPort() {
      return opsPort;
    },
    get apiPort() {
      return apiPort;
    },
    get refused() {
      return refused;
    },
    lastWords: () => lastWords || child.complaints(),
    commands: child.ready["commands"] as string[],
    async begin() {
      child.say({ begin: true });
      await until(
        () => port > 0 || refused !== undefined || child.isGone(),
        `start of a ${options.role}: ${child.complaints()}`,
        20_000,
      );
    },
    async arm(rule) {
      const before = armed;
      child.say({ arm: rule });
      await until(() => armed > before || child.isGone(), "armed rule", 10_000);
    },
    async setClock(offMs) {
      const before = steps;
      child.say({ clockOffMs: offMs });
      await until(() => steps > before || child.isGone(), "step of the clock", 10_000);
    },
    disarm: () => child.say({ disarm: true }),
    go: () => child.say({ go: true }),
    hits,
    hit: (point, timeoutMs = 15_000) =>
      until(() => hits.find((one) => one.point === point), `hit of ${point}`, timeoutMs),
    async kill() {
      child.signal("SIGKILL");
      await child.exited;
    },
    reload: () => child.signal("SIGHUP"),
    freeze: () => child.signal("SIGSTOP"),
    thaw: () => child.signal("SIGCONT"),
    isGone: child.isGone,
    exited: child.exited,
    stop: child.stop,
    [Symbol.asyncDispose]: child.stop,
  };
}
