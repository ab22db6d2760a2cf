import { createServer, connect, type Socket } from "node:net";
import { once } from "node:events";

/** A line in front of a server that can be cut, slowed, and left half open. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** Tears every connection now. */
  cut(): void;
  /** New connections are torn at once, old ones now; `false` lets them through again. */
  refuse(on: boolean): void;
  /** Each chunk arrives so much later, give or take half of `jitterMs`. */
  slow(ms: number, jitterMs?: number): void;
  /** What clients send arrives; nothing comes back. */
  halfOpen(on: boolean): void;
  /** Nothing passes in either direction, nothing is closed: a partition. */
  partition(on: boolean): void;
  /** Nothing passes on the connections that are open now, and none is closed; new ones work. */
  freeze(): void;
  /** Each chunk tears its connection with this probability. */
  tear(probability: number): void;
  close(): Promise<void>;
}

export async function startProxy(
  targetPort: number,
  random: () => number = Math.random,
): Promise<Proxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let refusing = false;
  let delayMs = 0;
  let jitter = 0;
  let tearing = 0;
  let isHalfOpen = false;
  let isParted = false;
  const frozen = new WeakSet<Socket>();

  const server = createServer((client) => {
    if (refusing) {
      client.destroy();
      return;
    }
    const upstream = connect(targetPort, "127.0.0.1");
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const drop = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on("error", drop);
      socket.on("close", drop);
    }
    pass(client, upstream, "there", drop);
    pass(upstream, client, "back", drop);
  });

  function pass(from: Socket, to: Socket, way: "there" | "back", drop: () => void): void {
    let earliest = 0;
    from.on("data", (chunk: Buffer) => {
      if (isParted || frozen.has(from) || (isHalfOpen && way === "back")) return;
      if (tearing > 0 && random() < tearing) return drop();
      if (delayMs === 0) return void to.write(chunk);
      // Later chunks must not overtake earlier ones
      const due = Math.max(earliest, performance.now() + delayMs + (random() - 0.5) * jitter);
      earliest = due;
      setTimeout(
        () => void (to.destroyed || to.write(chunk)),
        Math.max(0, due - performance.now()),
      );
    });
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const cut = () => {
    for (const [client, upstream] of pairs) {
      client.destroy();
      upstream.destroy();
    }
    pairs.clear();
  };
  const close = async () => {
    cut();
    const closed = once(server, "close");
    server.close();
    await closed;
  };
  return {
    port: address.port,
    cut,
    refuse(on) {
      refusing = on;
      if (on) cut();
    },
    slow(ms, jitterMs = 0) {
      delayMs = ms;
      jitter = jitterMs;
    },
    halfOpen(on) {
      isHalfOpen = on;
    },
    partition(on) {
      // What was swallowed is gone, so the lines can't be used any more afterwards
      if (isParted && !on) cut();
      isParted = on;
    },
    freeze() {
      for (const socket of [...pairs].flat()) frozen.add(socket);
    },
    tear(probability) {
      tearing = probability;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
