import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { ensureRedis, freePort, type RedisServer, startRedis } from "../../sandbox/ensure-redis.ts";
import { until } from "./until.ts";

/** One Redis among several, which may be killed, frozen and started again. */
export interface RedisNode {
  readonly port: number;
  readonly url: string;
  /** A connection of the test's own, which reconnects. */
  readonly admin: Redis;
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** After `kill`, with the same data. */
  start(): Promise<void>;
}

/** Several servers that take over from each other. */
export interface RedisNodes extends AsyncDisposable {
  /** As it stands in REDIS_URL. */
  readonly url: string;
  readonly nodes: readonly RedisNode[];
  /** Who takes the writes to `{namespace}` now, as the others say. */
  primary(): Promise<RedisNode>;
  /** Resolves with the new primary once it is another one than `old`. */
  another(old: RedisNode): Promise<RedisNode>;
  /** Resolves when every server runs and copies as it should. */
  whole(): Promise<unknown>;
}

export interface RedisCluster extends RedisNodes {
  /** CLUSTER FAILOVER: the replica of our primary takes its place in an orderly way. */
  failOver(): Promise<void>;
  /** Gives our slot, with its keys, to another primary. */
  moveSlot(): Promise<void>;
}

const nodeTimeoutMs = 1500;
const keeping = ["--repl-diskless-sync-delay", "0"];

/** Of `localhost`, by itself. */
export const certificate = path.join(
  import.meta.dirname,
  "../fleet/compute/certificates/localhost.pem",
);

/** Nothing in the clear. */
const tlsAt = (port: string): string[] => [
  ...`--port 0 --tls-port ${port} --tls-replication yes --tls-auth-clients no`.split(" "),
  ...["cert", "key", "ca-cert"].flatMap((what) => [`--tls-${what}-file`, certificate]),
];

async function startNode(
  folder: string,
  args: readonly string[],
  { program, tls = false }: { program?: string; tls?: boolean } = {},
): Promise<RedisNode & AsyncDisposable> {
  await mkdir(folder, { recursive: true });
  const port = await freePort();
  const settings = {
    dir: folder,
    port,
    args: tls ? [...args, ...tlsAt(String(port))] : args,
    ...(program === undefined ? {} : { program }),
  };
  let server: RedisServer = await startRedis(settings);
  const { url } = server;
  const password = args[args.indexOf("--masterauth") + 1];
  const admin = new Redis(port, "127.0.0.1", {
    ...(args.includes("--masterauth") && password !== undefined ? { password } : {}),
    ...(tls ? { tls: { ca: readFileSync(certificate), servername: "localhost" } } : {}),
    maxRetriesPerRequest: 1,
    commandTimeout: 1000,
    retryStrategy: () => 100,
  });
  admin.on("error", () => undefined); // it is killed on purpose
  // On a slow machine the first command, which must connect, takes longer than others may
  await until(() => admin.ping().catch(() => undefined));
  return {
    port,
    url,
    admin,
    kill: () => server.kill(),
    freeze: () => void process.kill(server.pid, "SIGSTOP"),
    thaw: () => void process.kill(server.pid, "SIGCONT"),
    async start() {
      server = await startRedis(settings);
    },
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await server.kill();
    },
  };
}

async function inFolder<T extends object>(
  build: (folder: string, stack: AsyncDisposableStack) => Promise<T>,
): Promise<T & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-nodes-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const built = await build(folder, stack);
  const kept = stack.move();
  return { ...built, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** Asks one after the other until one answers. */
async function fromAny<T>(
  nodes: readonly RedisNode[],
  ask: (node: RedisNode) => Promise<T | undefined>,
) {
  for (const node of nodes) {
    const answer = await ask(node).catch(() => undefined);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

const changing = (primary: () => Promise<RedisNode | undefined>) => ({
  primary: () => until(primary),
  another: (old: RedisNode) =>
    until(async () => {
      const now = await primary();
      return now === old ? undefined : now;
    }),
});

/**
 * A Redis Cluster of three primaries and three replicas. `one`: REDIS_URL names a single node, as managed services do; `tls`: it
 * names it by name, and the others are announced by address.
 */
export function startCluster(namespace = "gatehouse", { one = false, tls = false } = {}) {
  return inFolder<Omit<RedisCluster, typeof Symbol.asyncDispose>>(async (folder, stack) => {
    const nodes = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const bus = await freePort();
        const own = ["--cluster-enabled", "yes", "--cluster-port", String(bus)];
        const fast = [
          "--cluster-node-timeout",
          String(nodeTimeoutMs),
          "--cluster-announce-ip",
          "127.0.0.1",
        ];
        const secure = tls ? ["--tls-cluster", "yes"] : [];
        const args = [...keeping, ...own, ...fast, ...secure];
        const node = await startNode(path.join(folder, String(n)), args, { tls });
        stack.use(node);
        await node.admin.cluster("SET-CONFIG-EPOCH", n + 1);
        return { ...node, bus, id: await node.admin.cluster("MYID") };
      }),
    );
    const [first] = nodes;
    if (!first) throw new Error("no nodes");
    for (const { port, bus } of nodes)
      await first.admin.call("CLUSTER", "MEET", "127.0.0.1", port, bus);
    for (const [n, { admin }] of nodes.slice(0, 3).entries())
      await admin.call("CLUSTER", "ADDSLOTSRANGE", n * 5462, Math.min(16_383, n * 5462 + 5461));
    for (const [n, { admin }] of nodes.slice(3).entries())
      await until(() =>
        admin.call("CLUSTER", "REPLICATE", nodes[n]?.id ?? "").then(
          () => true,
          () => undefined,
        ),
      );
    const slot = Number(await first.admin.call("CLUSTER", "KEYSLOT", `{${namespace}}`));

    /** Who has our slot, as this node says. */
    const serving = async (node: RedisNode) => {
      const ranges = await node.admin.call("CLUSTER", "SLOTS");
      const ours = (ranges as [number, number, [string, number]][]).find(
        ([from, to]) => from <= slot && slot <= to,
      );
      return nodes.find(({ port }) => port === ours?.[2][1]);
    };
    const isWhole = async () => {
      const states = await Promise.all(
        nodes.map(async ({ admin }) => [
          String(await admin.call("CLUSTER", "INFO")),
          await admin.info("replication"),
        ]),
      );
      const fits = states.every(
        ([cluster = "", replication = ""]) =>
          /cluster_state:ok/.test(cluster) &&
          /cluster_known_nodes:6/.test(cluster) &&
          /cluster_size:3/.test(cluster) &&
          /role:master|master_link_status:up/.test(replication),
      );
      const copies = states.filter(([, replication = ""]) => /role:slave/.test(replication));
      return fits && copies.length === 3 ? true : undefined;
    };
    const whole = () => until(() => isWhole().catch(() => undefined));
    await whole();

    /** As most say it: one that slept believes the old story. */
    const primary = async () => {
      const answers = await Promise.all(nodes.map((node) => serving(node).catch(() => undefined)));
      const votes = (named: unknown) => answers.filter((answer) => answer === named).length;
      return answers.find((answer) => answer !== undefined && votes(answer) >= 3);
    };
    const told = changing(primary);
    return {
      url: nodes
        .slice(0, one ? 1 : 6)
        .map(({ url, port }) => (tls ? `rediss://localhost:${port}` : url))
        .join(","),
      nodes,
      ...told,
      whole,
      async failOver() {
        const old = await told.primary();
        const replica = await fromAny(nodes, async (node) =>
          (await node.admin.info("replication")).includes(`master_port:${old.port}`)
            ? node
            : undefined,
        );
        await replica?.admin.call("CLUSTER", "FAILOVER");
        await told.another(old);
      },
      async moveSlot() {
        const from = (await told.primary()) as (typeof nodes)[number];
        const to = await fromAny(nodes, async (node) => {
          const isPrimary = /role:master/.test(await node.admin.info("replication"));
          return isPrimary && node !== from ? (node as (typeof nodes)[number]) : undefined;
        });
        if (!to) throw new Error("there is no other primary");
        await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id);
        await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id);
        for (;;) {
          const keys = (await from.admin.call("CLUSTER", "GETKEYSINSLOT", slot, 50)) as string[];
          if (keys.length === 0) break;
          await from.admin.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", ...keys);
        }
        for (const { admin } of [to, from])
          await admin.call("CLUSTER", "SETSLOT", slot, "NODE", to.id);
        await told.another(from);
      },
    };
  });
}

/** One by itself, which speaks TLS alone. */
export function startAlone(password: string) {
  return inFolder<Pick<RedisNodes, "url" | "primary">>(async (folder, stack) => {
    const secret = ["--requirepass", password, "--masterauth", password];
    const node = stack.use(await startNode(path.join(folder, "alone"), secret, { tls: true }));
    return { url: `rediss://:${password}@localhost:${node.port}`, primary: async () => node };
  });
}

/** A primary called `gatehouse`, its replica, and three sentinels. `tls`: they and their clients speak nothing else. */
export function startSentinels({
  password,
  tls = false,
}: { password?: string; tls?: boolean } = {}) {
  return inFolder<Omit<RedisNodes, typeof Symbol.asyncDispose>>(async (folder, stack) => {
    const secret =
      password === undefined ? [] : ["--requirepass", password, "--masterauth", password];
    const own = [...keeping, ...secret];
    const first = stack.use(await startNode(path.join(folder, "first"), own, { tls }));
    const copying = [...own, "--replicaof", `127.0.0.1 ${first.port}`];
    const second = stack.use(await startNode(path.join(folder, "second"), copying, { tls }));
    const nodes = [first, second];
    const sentinels = await Promise.all(
      [1, 2, 3].map(async (n) => {
        const place = path.join(folder, `sentinel-${n}`);
        await mkdir(place);
        const settings = [
          `sentinel monitor gatehouse 127.0.0.1 ${first.port} 2`,
          `sentinel down-after-milliseconds gatehouse ${nodeTimeoutMs}`,
          "sentinel failover-timeout gatehouse 6000",
          ...(password === undefined ? [] : [`sentinel auth-pass gatehouse ${password}`]),
        ];
        await writeFile(path.join(place, "sentinel.conf"), `${settings.join("\n")}\n`);
        const program = path.join(place, "sentinel");
        // Its arguments begin with --port and the port
        const script = `#!/bin/sh\ncd "${place}"\necho "Ready to accept connections"\nexec "${await ensureRedis()}" sentinel.conf --sentinel --bind 127.0.0.1 ${tls ? tlsAt('"$2"').join(" ") : '--port "$2"'}\n`;
        await writeFile(program, script);
        await chmod(program, 0o755);
        return stack.use(await startNode(place, [], { program, tls }));
      }),
    );
    const primary = async () =>
      fromAny(sentinels, async ({ admin }) => {
        const [, port] = (await admin.call(
          "SENTINEL",
          "GET-MASTER-ADDR-BY-NAME",
          "gatehouse",
        )) as string[];
        return nodes.find((node) => node.port === Number(port));
      });
    const isWhole = async () => {
      for (const { admin } of sentinels) {
        await admin.call("SENTINEL", "CKQUORUM", "gatehouse");
        const copies = (await admin.call("SENTINEL", "REPLICAS", "gatehouse")) as unknown[];
        if (copies.length === 0) return undefined;
      }
      const states = await Promise.all(nodes.map(({ admin }) => admin.info("replication")));
      const copies = states.filter((state) => /master_link_status:up/.test(state));
      return copies.length === 1 ? true : undefined;
    };
    const whole = () => until(() => isWhole().catch(() => undefined));
    await whole();
    const login = password === undefined ? "" : `:${password}@`;
    const hosts = sentinels.map(({ port }) => `${tls ? "localhost" : "127.0.0.1"}:${port}`);
    return {
      url: `${tls ? "rediss" : "redis"}-sentinel://${login}${hosts.join(",")}/gatehouse/0`,
      nodes,
      ...changing(primary),
      whole,
    };
  });
}
