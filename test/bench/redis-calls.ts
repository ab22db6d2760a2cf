import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

/** What clients ask of a Redis, from MONITOR: each command of a pipeline is one, a script is one, what it does within is none. */
export interface RedisCalls extends Disposable {
  /** Since the start or the last `forget`: what was asked → how often. */
  counts(): Map<string, number>;
  forget(): void;
}

export async function watchRedis(url: string): Promise<RedisCalls> {
  const { hostname, port } = new URL(url);
  // Not with ioredis: its MONITOR fails when the first lines come together with the answer
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let counted = new Map<string, number>();
  const lines = createInterface({ input: socket });
  socket.write("MONITOR\r\n");
  await once(lines, "line");
  lines.on("line", (line) => {
    const [, source = "", words = ""] = /^\+[\d.]+ \[\d+ (\S+)\] (.*)$/s.exec(line) ?? [];
    if (source === "" || source === "lua") return;
    const what = nameOf([...words.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = ""]) => word));
    counted.set(what, (counted.get(what) ?? 0) + 1);
  });
  return {
    counts: () => counted,
    forget: () => (counted = new Map()),
    [Symbol.dispose]: () => socket.destroy(),
  };
}

/** The command, of a script its hash, and the first key without what is particular to one request. */
function nameOf([command = "", ...args]: readonly string[]): string {
  const verb = command.toLowerCase();
  const isScript = verb === "evalsha" || verb === "eval";
  const script = isScript ? ` ${(args[0] ?? "").slice(0, 8)}` : "";
  const first = (isScript ? args[2] : args[0]) ?? "";
  return `${verb}${script} ${first.replaceAll(/(?<=:)[^:]*\d[^:]*/g, "…")}`;
}

/** What was asked beyond what is asked in that time anyway: `idle` was counted over `idleMs`. */
export function beyond(
  busy: ReadonlyMap<string, number>,
  busyMs: number,
  idle: ReadonlyMap<string, number>,
  idleMs: number,
): number {
  return [...busy].reduce(
    (sum, [what, count]) => sum + Math.max(0, count - ((idle.get(what) ?? 0) * busyMs) / idleMs),
    0,
  );
}
