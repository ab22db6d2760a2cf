import { connect, isIP, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { AbstractConnector, Redis } from "ioredis";
import { type ClientCertificate, isTakenByTls } from "../config/compute-tls.ts";
import type { RedisAddress } from "../config/redis-address.ts";
import { codeOf, messageOf } from "../errors.ts";
import { deadlineMs } from "../deadline.ts";

/** The address that a server listens on. */
interface Place {
  host: string;
  port: number;
}

/** A server that doesn't answer a question within this time counts as down (ms). */
const answerMs = 1_000;
/** How often the other nodes are asked whether the primary is still the same (ms). */
const lookMs = 1_000;
const retryMs = 250;
const maxAsked = 7;

const nameOf = ({ host, port }: Place) => `${host}:${port}`;

/**
 * Nodes may announce themselves by IP address although the certificate has the host name from
 * REDIS_URL.
 */
function certifiedName({ nodes }: RedisAddress, { host }: Place): { servername?: string } {
  const named = nodes.find((node) => isIP(node.host) === 0)?.host;
  return isIP(host) !== 0 && named !== undefined ? { servername: named } : {};
}

type Connector = new (options: unknown) => AbstractConnector;

/**
 * Connects to the primary that takes our writes, whichever server that is now. All keys carry one
 * hash tag, so in a Cluster, too, that is one server (decision 017). The other nodes, or the
 * sentinels, are asked which one it is before each connection, and once a second while the
 * connection lasts, because a frozen primary closes nothing. After each connection, `renewLogin`
 * may put another user and password into the client's options, including those of its duplicates.
 */
export function primaryConnector(
  address: RedisAddress,
  hashTag: string,
  {
    renewLogin,
    certificate,
  }: {
    renewLogin: (options: object) => void;
    /**
     * Read for each connection. While a pair is being replaced, certificate and key may not match;
     * the former pair is then used.
     */
    certificate?: (() => ClientCertificate | undefined) | undefined;
  },
): Connector {
  let shown: ClientCertificate | undefined;
  const tlsOptions = (place: Place) => {
    const now = certificate?.();
    if (now?.cert !== undefined && now.cert !== shown?.cert && isTakenByTls(now)) shown = now;
    return { ...certifiedName(address, place), ...shown };
  };
  const finder = createFinder(address, hashTag, tlsOptions);
  const open = new Map<PrimaryConnector, Place>();
  let watching: NodeJS.Timeout | undefined;

  function watch(): void {
    if (watching !== undefined || !finder.mayMove()) return;
    watching = setInterval(() => {
      // A failure needs no report here: the next connection attempt reports it.
      finder.find().then(dropOthers, () => undefined);
    }, lookMs).unref();
  }

  function dropOthers(primary: Place): void {
    for (const [connector, place] of open)
      if (nameOf(place) !== nameOf(primary)) connector.drop("Redis has another primary now");
  }

  function closed(connector: PrimaryConnector): void {
    open.delete(connector);
    if (open.size > 0) return;
    clearInterval(watching);
    watching = undefined;
    finder.rest();
  }

  class PrimaryConnector extends AbstractConnector {
    readonly #options: object;

    constructor(options: unknown) {
      super(/* How long an unanswered end of the connection is waited for (ms). */ 500);
      this.#options = Object(options);
    }

    /** Tries until there is a primary: a rejection would end the client for good. */
    async connect(emit: (type: string, error: Error) => void) {
      this.connecting = true;
      for (;;) {
        try {
          const place = await finder.find();
          this.#goOn();
          return this.#open(place);
        } catch (error) {
          this.#goOn();
          emit("error", Object.assign(new Error(messageOf(error)), { code: codeOf(error) }));
          await sleep(retryMs);
          this.#goOn();
        }
      }
    }

    #goOn(): void {
      if (this.connecting) return;
      closed(this);
      throw new Error("Connection is closed.");
    }

    #open(place: Place) {
      this.stream = address.tls ? connectTls({ ...place, ...tlsOptions(place) }) : connect(place);
      gatherWrites(this.stream);
      // `on`, not `once`: a second error, for example when the server ends TLS meanwhile, would end
      // the process.
      this.stream.on("error", (error) => {
        this.firstError ??= error;
      });
      this.stream.once("close", () => {
        closed(this);
        renewLogin(this.#options);
      });
      open.set(this, place);
      watch();
      return this.stream;
    }

    drop(why: string): void {
      this.stream.destroy(new Error(why));
    }

    /**
     * Gets the INFO of the server that was reached. False makes the client look for the primary
     * again.
     */
    override check(info: Partial<Record<string, string>>): boolean {
      if (finder.learn(info)) return false;
      return !finder.mayMove() || info["role"] !== "slave";
    }
  }
  return PrimaryConnector;
}

/**
 * Sends everything that is written in one turn of the event loop together, so that its answers come
 * together, too. Without this, each of many simultaneous deliveries would cost a system call here
 * and one in Redis. Unlike in a pipeline of ioredis, each command keeps its own result.
 */
function gatherWrites(socket: Socket): void {
  const write = socket.write.bind(socket);
  const gather = (...args: Parameters<typeof write>) => {
    if (socket.writableCorked === 0) {
      socket.cork();
      setImmediate(() => socket.uncork());
    }
    return write(...args);
  };
  socket.write = gather as typeof socket.write;
}

function createFinder(
  address: RedisAddress,
  hashTag: string,
  tlsOptions: (place: Place) => object,
) {
  let mode = address.mode;
  let learned: readonly Place[] = [];
  let slot: number | undefined;
  /**
   * True once the sentinels turned out to have no password, which is common even where Redis has
   * one.
   */
  let isOpen = false;
  /**
   * Connections for questions, each with its last error, because a failed question doesn't say why
   * it failed.
   */
  const askers = new Map<string, { redis: Redis; error?: Error }>();

  function askerOf(place: Place): { redis: Redis; error?: Error } {
    const known = askers.get(nameOf(place));
    if (known) return known;
    const options = {
      ...place,
      ...(!isOpen && address.login),
      ...(address.tls && { tls: tlsOptions(place) }),
      retryStrategy: null,
      enableReadyCheck: false,
      connectTimeout: deadlineMs(answerMs),
      commandTimeout: deadlineMs(answerMs),
      disconnectTimeout: 100,
      connectionName: "gatehouse-finder",
    };
    const asker: { redis: Redis; error?: Error } = { redis: new Redis(options) };
    asker.redis.on("error", (error: Error) => {
      asker.error = error;
    });
    askers.set(nameOf(place), asker);
    return asker;
  }

  async function ask(place: Place): Promise<Place> {
    const asker = askerOf(place);
    const { redis } = asker;
    try {
      return mode === "sentinel" ? await askSentinel(redis) : await askNode(redis, place);
    } catch (error) {
      redis.disconnect();
      if (askers.get(nameOf(place)) === asker) askers.delete(nameOf(place));
      const why = asker.error ?? error;
      if (mode !== "sentinel" || isOpen || !/^(WRONGPASS|ERR AUTH)/.test(messageOf(why))) throw why;
      isOpen = true;
      return ask(place);
    }
  }

  async function askSentinel(redis: Redis): Promise<Place> {
    const name = address.name ?? "";
    const primary = await redis.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name);
    if (primary === null) throw new Error(`the sentinels know no primary called ${name}`);
    const [host, port] = primary as [string, string];
    return { host, port: Number(port) };
  }

  async function askNode(redis: Redis, asked: Place): Promise<Place> {
    const own = (slot ??= await redis.cluster("KEYSLOT", `{${hashTag}}`));
    const ranges = await redis.cluster("SLOTS");
    const places = ranges.map(([, , ...nodes]) =>
      nodes.map(([host, port]) => ({ host: host || asked.host, port })),
    );
    learned = places.flat();
    const ours = ranges.findIndex(([first, last]) => first <= own && own <= last);
    const primary = places[ours]?.[0];
    if (primary === undefined) throw new Error("no node of the Cluster serves Gatehouse's slot");
    return primary;
  }

  /**
   * The server that most nodes name. One node alone may be wrong: after sleeping through a
   * failover, it still names the former primary.
   */
  async function find(): Promise<Place> {
    const [only] = address.nodes;
    if (mode === "single" && only) return only;
    const known = new Map([...address.nodes, ...learned].map((place) => [nameOf(place), place]));
    const asked = [...known.values()].slice(0, maxAsked);
    const votes = new Map<string, Place[]>();
    const asking = asked.map(async (place) => {
      const named = await ask(place);
      const all = [...(votes.get(nameOf(named)) ?? []), named];
      votes.set(nameOf(named), all);
      if (all.length <= asked.length / 2) throw new Error("no majority yet");
      return named;
    });
    return Promise.any(asking).catch((error: AggregateError) => {
      const [most] = [...votes.values()].toSorted((a, b) => b.length - a.length);
      if (most?.[0] === undefined) throw error.errors.at(-1);
      return most[0];
    });
  }

  return {
    find,
    /** Whether the primary may become another server. */
    mayMove: () => mode !== "single",
    /** A single address may belong to a Cluster. Returns true when that was new. */
    learn(info: Partial<Record<string, string>>): boolean {
      if (mode !== "single" || info["cluster_enabled"] !== "1") return false;
      mode = "cluster";
      return true;
    },
    rest(): void {
      for (const { redis } of askers.values()) redis.disconnect();
      askers.clear();
    },
  };
}
