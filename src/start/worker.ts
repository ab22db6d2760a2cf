import { ConfigError } from "../config/config.ts";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { commands } from "../commands/index.ts";
import { createDigests, createPostDue } from "../digests/create-digests.ts";
import { monitorDrift } from "../digests/drift-monitor.ts";
import { monitorStatuses } from "../digests/status-monitor.ts";
import { createAlarms, requestsForDigest } from "../digests/requests.ts";
import { placesOf } from "../policy/access.ts";
import type { Services } from "./services.ts";
import { startQueueProbe, startHeartbeat, observeAlive, startWorkers } from "../jobs/queues.ts";
import { startDispatcher, startRounds, takeTurn } from "../redis/due-list.ts";
import type { Message } from "../messages/message.ts";
import {
  createDurability,
  checkLedger,
  openLedger,
  removeOldLedgers,
} from "../requests/journal/ledger.ts";
import { createShares, type WorkerContext } from "../requests/perform/gate.ts";
import { lookForLateEffects, resendOwn, sweep } from "../requests/perform/sweep.ts";
import { advance } from "../requests/perform/perform.ts";
import { redraw } from "../requests/journal/journal.ts";
import type { StoredRequest } from "../requests/journal/record.ts";
import { pollWork } from "../requests/perform/poll.ts";
import { advanceRollout } from "../rollouts/advance-rollout.ts";
import { requestable } from "../registry/define.ts";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { within } from "../deadline.ts";
import { codeOf, messageOf, UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { shared } from "./checks.ts";

const drainMs = 6000;
const concurrency = 20;
/** What is left of the time to stop in, once no request is being worked on. */
const pollsEndMs = 1500;
/** How late a digest may be for its time. */
const dueEveryMs = 5_000;
/** Lease of a digest in longest calls: usually a minute. */
const leaseInCalls = 4;

/** Performs requests. `onDead` is called when the queue stalls. */
export async function startWorker(on: Services, onDead: (why: string) => void): Promise<void> {
  const { config, log, key, redis, store, queues, opened } = on;
  const { timing } = config.policy;
  const workerId = `w-${randomBytes(6).toString("hex")}`;
  const ledgers = path.join(config.dataDir, "ledger");
  const ledger = opened(await openLedger(ledgers, workerId));
  const removed = await removeOldLedgers(ledgers, Math.min(Date.now(), await store.now()));
  if (removed.length > 0) log.info("ledger.old-removed", { count: removed.length });
  for (const line of ledger.torn) {
    log.warn("ledger.torn-line", { ...line });
    await store.note({ what: "ledger-torn", ...line });
  }
  const check = () => checkLedger(ledger, store, log);
  await check();
  // Redis may come back with older data: compare with the ledger again
  redis.on("ready", () => {
    check().catch((error: unknown) => log.warn("ledger.unchecked", { error }));
  });
  const heartbeat = opened(await startHeartbeat({ ...on, workerId, beatMs: timing.heartbeatMs }));
  const durability = createDurability({
    redis: await on.connected("waits"),
    key,
    replicas: config.redisReplicas,
    waitMs: Math.round(0.75 * timing.claimWindowMs),
    log,
  });
  const lasting = {
    ...on,
    ledger,
    commands: requestable(commands),
    standstill: on.policyKeeper.standstill,
    person: on.people.person,
    workerId,
    isAlive: observeAlive(heartbeat.isAlive, timing.heartbeatMs),
    wake: queues.wake,
    mine: new Set<string>(),
    calling: new Set<string>(),
    shares: createShares(concurrency),
    sendingSince: new Map<string, number>(),
    unsent: new Set<string>(),
    durable: durability.keep,
  } satisfies Omit<WorkerContext, "policy" | "policyVersion" | "ourTeamId">;
  /** Each step begins with the rules of its moment and keeps them. */
  const contextNow = (): WorkerContext => ({
    ...lasting,
    ...config.policyFile.inForce,
    get ourTeamId() {
      return on.identity.known().teamId;
    },
  });
  const queueProbe = opened(
    startQueueProbe({ workerId, everyMs: timing.canaryMs, send: queues.queueProbe, onDead }),
  );
  const jobs = startWorkers({
    connection: await on.connected("worker"),
    prefix: key.prefix,
    concurrency,
    // Its death is noticed later than that
    lookMs: 2 * timing.heartbeatMs,
    advance: (id) =>
      id.startsWith("roll-")
        ? advanceRollout(id, { ...on, workerContext: contextNow() })
        : advance(id, contextNow()),
    heard: queueProbe.heard,
    log,
  });
  opened({ close: () => jobs.close(drainMs) });
  jobs.begin();
  const everyMs = () => config.policy.timing.heartbeatMs;
  const polling = startDispatcher([pollWork(contextNow)], { everyMs, log });
  opened({ close: () => polling.close(pollsEndMs) });
  const tellOf = async ({ record, delivered }: StoredRequest, message: Message) => {
    const { channelId, ts } = delivered.card ?? {};
    const place = channelId && ts ? { channelId, threadTs: ts } : { channelId: record.channelId };
    await on.announce({ id: `late-effect:${record.id}`, ...place, message });
  };
  async function sweepAll(): Promise<void> {
    await sweep(contextNow());
    for (const id of await on.rollouts.openIds()) await queues.wake(id);
  }
  const every = roundsOf(on);
  const sweeping = every(timing.sweepMs, "sweep", sweepAll);
  // What waited under the former policy is canceled at once, as the audit channel was told
  on.policyKeeper.onChanged(() => void sweeping.now());
  // Redis may be emptied without a reconnect
  every(timing.sweepMs, "ledger", () => checkLedger(ledger, store, log, 200));
  every(timing.stableGapMs, "resend", () => resendOwn(contextNow()));
  every(timing.stableGapMs, "late-effects", () => lookForLateEffects(contextNow(), tellOf));
  startDigests(on);
}

const roundsOf =
  ({ opened, log }: Services) =>
  (everyMs: number, name: string, act: () => Promise<unknown>) =>
    opened(startRounds(name, everyMs, act, log));

/** How often alerts are looked for whose source says no more of them (ms). */
const unheardEveryMs = 60_000;

/** Digests, drift of pinned VMs, unrequested changes. Redis lets one process at a time; each ID is posted once. */
function startDigests(on: Services): void {
  const { redis, key, config, opened, announce } = on;
  const { timing } = config.policy;
  const now = Date.now;
  const requests = requestsForDigest(on.store, redis, key, requestable(commands));
  const personName = async (id: string) =>
    (await on.people.person(id, on.identity.known().teamId)).name;
  const digests = createDigests({ ...on, requests, personName, now });
  const alarms = createAlarms({ config, announce });
  const stopping = new AbortController();
  const postDue = createPostDue({
    ...on,
    digests,
    alarm: (channelId, id, message) =>
      alarms.tell(id, message, placesOf(config.policy, channelId)[0] ?? ""),
    now,
    leaseMs: leaseInCalls * timing.httpTimeoutMs,
  });
  const watching = { ...on, alarms, follow: on.subscriptions.follow, now };
  const drift = () =>
    monitorDrift({
      ...watching,
      pins: config.policy.attestation.pins,
      records: digests.drift,
      everyMs: timing.driftWatchMs,
      signal: stopping.signal,
    });
  const statuses = () =>
    monitorStatuses({
      ...watching,
      requests,
      records: digests.statuses,
      everyMs: timing.inventoryRefreshMs,
      // Cards that wait for approval say that the status is another one by now
      async onMoved(vms) {
        for (const vm of vms) await redraw(await on.askingAbout({ kind: "vm", ...vm }), on.store);
      },
    });
  // More often than the interval, so that a dead process's turn is soon retaken
  const every = roundsOf(on);
  every(Math.min(dueEveryMs, timing.sweepMs), "digests", postDue);
  every(timing.driftWatchMs / 4, "drift-watch", drift);
  every(timing.inventoryRefreshMs / 2, "status-watch", statuses);
  every(unheardEveryMs, "alerts-unheard", async () => {
    if (await takeTurn(redis, key, "alerts-unheard", unheardEveryMs))
      await on.alerts.endUnheard(config.policy.sources);
  });
  // Last, so that it is closed first: a long round must not delay the stop
  opened({ close: async () => stopping.abort() });
}

interface PortOptions {
  /** The variable that sets the port. */
  variable?: string;
  port: number;
  /** Default: all interfaces. */
  host?: string | undefined;
  log: Log;
}

/** Connections that have no request in hand. */
const mostIdle = 256;
/** A new connection isn't idle yet: of a burst all come before the first has said anything (ms). */
const idleGraceMs = 500;
/** All together; beyond it new ones are dropped where each has a whole request in hand. */
const mostConnections = 1_024;
/** Without a byte in either direction: longer than a call waits for the next state. */
const silentMs = 70_000;

/** Why a port can't be had. Another process may give it back: that is worth another try. */
const troubles: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process has it",
  EACCES: "this user can't bind ports below 1024",
  EADDRNOTAVAIL: "this machine doesn't have that address",
};

/**
 * A web server of this process. `listener` answers false where nothing is at the address. Of connections without a request the
 * oldest is cut when there are too many for longer than a burst takes, and where there is no room at all the oldest whose request
 * hasn't arrived whole: so whoever opens them without end shuts nobody out. Throws when the port is taken.
 */
export async function startWebServer(
  { variable = "PORT", port, host, log }: PortOptions,
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
) {
  /** Since when, the longest first. */
  const idle = new Map<Socket, number>();
  /** All that are open, with the request in hand; those that were heard of last come last. */
  const open = new Map<Socket, IncomingMessage | undefined>();
  const how = { requestTimeout: 15_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
  const server = createServer(how, (request, response) => {
    if (listener(request, response) === false)
      response.writeHead(404, { connection: "close" }).end();
  });
  // One more comes in, so that another is cut for it
  server.maxConnections = mostConnections + 1;
  server.setTimeout(silentMs);
  const hold = (socket: Socket, request?: IncomingMessage) => {
    open.delete(socket);
    open.set(socket, request);
  };
  const cut = (socket: Socket) => {
    idle.delete(socket);
    open.delete(socket);
    socket.destroy();
  };
  let looking: NodeJS.Timeout | undefined;
  const cutIdle = () => {
    looking = undefined;
    const longest = performance.now() - idleGraceMs;
    for (const [socket, since] of idle) {
      if (idle.size <= mostIdle || since > longest) break;
      cut(socket);
    }
    lookLater();
  };
  const lookLater = () => {
    if (idle.size <= mostIdle) return;
    // What arrived meanwhile is read first, however busy the process was
    looking ??= setTimeout(() => setImmediate(cutIdle), idleGraceMs / 2).unref();
  };
  const makeRoom = () => {
    if (open.size <= mostConnections) return;
    const unfinished = open.entries().find(([, request]) => request?.complete !== true);
    if (unfinished) cut(unfinished[0]);
  };
  const rest = (socket: Socket) => {
    if (socket.destroyed) return;
    idle.set(socket, performance.now());
    hold(socket);
    lookLater();
  };
  server.on("connection", (socket) => {
    socket.once("close", () => {
      idle.delete(socket);
      open.delete(socket);
    });
    rest(socket);
    makeRoom();
  });
  server.on("request", (request, response) => {
    const { socket } = request;
    idle.delete(socket);
    hold(socket, request);
    response.once("finish", () => rest(socket));
  });
  server.listen({ port, host, backlog: mostConnections });
  await once(server, "listening").catch((error: unknown) => {
    const found = troubles[codeOf(error)];
    if (found === undefined) throw error;
    const hostVariable = variable === "OPS_PORT" ? "OPS_HOST" : "HOST";
    // A restart changes neither of these
    if (codeOf(error) === "EADDRNOTAVAIL")
      throw new ConfigError([`${hostVariable}: ${found}, ${host}: name one that it has`]);
    if (codeOf(error) === "EACCES")
      throw new ConfigError([`${variable}: ${found}: set it to a higher one`]);
    throw new UserError(
      `${variable}: the port can't be opened: ${found}`,
      `Set ${variable} to another one, or end the other process`,
    );
  });
  server.on("error", (error) => log.error("web.error", { error }));
  const address = server.address();

  /** Stops listening, lets running answers end for up to a second, then cuts them. */
  async function close(): Promise<void> {
    const closed = once(server, "close");
    server.close();
    server.closeIdleConnections();
    const late = setTimeout(() => server.closeAllConnections(), 1_000);
    await closed;
    clearTimeout(late);
  }
  const isPort = typeof address === "object" && address !== null;
  return { /** The port it really listens on. */ port: isPort ? address.port : port, close };
}

export interface HealthOptions extends PortOptions {
  /** The page of `/metrics`, and its content type. */
  figures(): Promise<{ type: string; text: string }>;
  /** Why this process should be restarted, or undefined. */
  alive(): string | undefined;
  /** Why this process shouldn't get work now, or undefined. Slower than 2 s counts as a no. */
  ready(): Promise<string | undefined>;
}

const readyWithinMs = 2_000;

/** The probes and figures of this process: `/healthz`, `/readyz`, `/metrics`. Throws when the port is taken. */
export function startHealth(options: HealthOptions) {
  const late = () => `the check took longer than ${readyWithinMs / 1000} s`;
  // A check that fails or hangs is a no as well
  const ready = shared(() =>
    within(readyWithinMs, Promise.try(options.ready), late).catch(messageOf),
  );
  const figures = shared(options.figures);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = (request.url ?? "/").split("?", 1)[0];
    if (asked !== "/healthz" && asked !== "/readyz" && asked !== "/metrics")
      return reply(response, 404, { problem: "no such page" });
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return reply(response, 405, { problem: "only GET" });
    }
    if (asked === "/metrics") {
      const { type, text } = await figures();
      return send(response, 200, type, text);
    }
    const problem = asked === "/healthz" ? options.alive() : await ready();
    return problem === undefined
      ? reply(response, 200, { ok: true })
      : reply(response, 503, { ok: false, problem });
  }

  return startWebServer(options, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      options.log.error("health.failed", { error });
      if (response.headersSent) response.destroy();
      else reply(response, 500, { problem: "internal error; see the log" });
    });
  });
}

function reply(response: ServerResponse, status: number, body: object): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(body)}\n`);
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}
