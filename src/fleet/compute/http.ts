import { addAbortListener } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { Agent, Client, type Dispatcher } from "undici";
import type { LookupFunction } from "node:net";
import { UserError } from "../../errors.ts";
import { type Live, currentValue } from "../../config/changing-file.ts";
import { parseTime } from "../../text/parse-time.ts";
import type { ComputeTls } from "../../config/compute-tls.ts";
import { type Log, silentLog } from "../../log/log.ts";
import {
  type Body,
  serviceMessage,
  type Bad,
  type Exchange,
  exchange,
  judgeChange,
  judgeRead,
  mayPass,
  type Request,
  type CallVerdict,
} from "./exchange.ts";
import {
  type Endpoint,
  fillPath,
  methodOf,
  ComputeError,
  type ComputeErrorKind,
  type ComputeErrorReason,
  describeFailure,
} from "./compute.ts";
import { connectOnce, createConnector, parseBaseUrl } from "./reach.ts";

export interface ComputeOptions {
  /** `https://host[/prefix]`, as `addressProblem` allows it. */
  baseUrl: string;
  /** One word of ASCII characters. It may be replaced while the process runs. */
  apiKey: Live;
  /** Looks for a newer key now: before each change, and after a 401. */
  refreshKey?: () => void;
  /** For one try: connecting, sending, and the whole answer. */
  timeoutMs: number;
  /** Concurrent reads; default 32. Each change has its own connection. */
  connections?: number;
  /** Of a record; default 1 MiB. Lists may have 16 times as much. */
  maxResponseBytes?: number;
  /** Lets a public host name resolve to private addresses, or to these ranges; never to link-local ones (metadata services). */
  allowPrivate?: boolean | readonly string[];
  /** Read for each connection. */
  tls?: () => ComputeTls;
  /** The address of a proxy that tunnels (CONNECT). */
  proxy?: string | undefined;
  log?: Log;
  /** Called after each try. */
  onCall?: (call: CallReport) => void;
  retryDelays?: Partial<RetryDelays>;
  /** Stands in for DNS. */
  lookup?: LookupFunction;
}

interface Call {
  endpoint: Endpoint;
  /** Of the VM or project that its path names. */
  id?: string;
  query?: Readonly<Record<string, string>>;
  body?: object | undefined;
  /** Lists may be larger than records. */
  list?: boolean;
  signal?: AbortSignal | undefined;
  /** Of a change: asked once connected; when false, nothing is sent (`unreachable`). */
  mayGoOn?: (() => Promise<boolean>) | undefined;
}

/** One try, for metrics. `kind` only when it failed. */
export interface CallReport {
  endpoint: Endpoint;
  /** 1 for the first; only reads have more. */
  attempt: number;
  status?: number;
  durationMs: number;
  kind?: ComputeErrorKind;
  reason?: ComputeErrorReason;
}

/** A 2xx answer that came whole. */
export interface Good {
  endpoint: Endpoint;
  status: number;
  body: Body;
}

export type Http = ReturnType<typeof createHttp>;

/** Lists may be this many times larger than a record. */
const listFactor = 16;

/** Throws UserError for a base URL or key that can't be used. */
export function createHttp(options: ComputeOptions) {
  const { apiKey, refreshKey, timeoutMs, onCall, log = silentLog() } = options;
  const { connections = 32, maxResponseBytes = 1024 * 1024 } = options;
  // What HTTP allows in a header value, without spaces (RFC 6750 allows less).
  if (!/^[\x21-\x7e]+$/.test(currentValue(apiKey)))
    throw new UserError("The compute service's key is empty or contains invalid characters");
  const base = parseBaseUrl(options.baseUrl, options.allowPrivate ?? false);
  const connect = createConnector({ ...options, base });
  const delays = { ...defaultDelays, ...options.retryDelays };
  // Headers and body share the call's own timer (exchange.ts), which is exact; undici's are not.
  const shared = { allowH2: false, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 };
  const agent = new Agent({ ...shared, connect, connections });
  const inSlot = createSlots(connections);
  /** Each call earns a tenth of one: retries must not multiply the load on a failing service. */
  let retries = 10;

  /** Retried within the budget. Rejects with ComputeError or UserError. */
  async function readWithRetries(call: Call): Promise<Good> {
    let request = prepare(call);
    retries = Math.min(mostRetries, retries + 0.1);
    for (let attempt = 1; ; attempt += 1) {
      const send = () => tryOnce(agent, call, request, attempt, judgeRead);
      const verdict = await inSlot(send, call.signal);
      if (verdict === undefined) throw toError(call, { kind: "unreachable", reason: "aborted" });
      if ("body" in verdict) return goodOf(call, verdict);
      if (verdict.answer?.status === 401 && hasNewerKey(request)) {
        request = prepare(call);
        continue;
      }
      const retryAfterMs = parseRetryAfter(verdict.answer?.retryAfter);
      const waitMs = mayPass(verdict) ? retryWaitMs(attempt, retryAfterMs, delays) : undefined;
      if (waitMs === undefined || retries < 1) throw toError(call, verdict);
      retries -= 1;
      const { endpoint } = call;
      log.info("compute.retry", { endpoint, attempt, reason: verdict.reason, waitMs });
      // Given up between tries: the last one is what is known
      await wait(waitMs, undefined, { signal: call.signal }).catch(() => {
        throw toError(call, verdict);
      });
    }
  }

  /** Sent at most once, on a connection of its own. Rejects with ComputeError or UserError. */
  async function change(call: Call): Promise<Good> {
    refreshKey?.();
    const request = prepare(call);
    const wire = { connected: false };
    const once = connectOnce(connect, wire, call.mayGoOn);
    const client = new Client(base.origin, { ...shared, connect: once });
    try {
      const verdict = await tryOnce(client, call, request, 1, (came) =>
        judgeChange(came, wire.connected),
      );
      if ("body" in verdict) return goodOf(call, verdict);
      // Not sent again, though a 401 says that nothing happened: one attempt is one send
      throw toError(call, verdict, verdict.answer?.status === 401 && hasNewerKey(request));
    } finally {
      // Not awaited: that would wait for a connection that is still being opened.
      client.destroy().catch(() => {});
    }
  }

  async function tryOnce(
    dispatcher: Dispatcher,
    { endpoint }: Call,
    request: Request,
    attempt: number,
    judge: (came: Exchange) => CallVerdict,
  ): Promise<CallVerdict> {
    const startedAt = performance.now();
    const came = await exchange(dispatcher, request);
    const durationMs = performance.now() - startedAt;
    const verdict = judge(came);
    onCall?.({
      endpoint,
      attempt,
      durationMs,
      ...(verdict.answer ? { status: verdict.answer.status } : {}),
      ...("kind" in verdict ? { kind: verdict.kind, reason: verdict.reason } : {}),
    });
    return verdict;
  }

  const authorization = () => `Bearer ${currentValue(apiKey)}`;

  /** Than the one that was refused. Another call may have found it, so what the look brings doesn't tell. */
  function hasNewerKey({ headers }: Request): boolean {
    refreshKey?.();
    return headers["authorization"] !== authorization();
  }

  function prepare(call: Call): Request {
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    const query = call.query && String(new URLSearchParams(call.query));
    return {
      origin: base.origin,
      path: base.prefix + fillPath(call.endpoint, call.id) + (query ? `?${query}` : ""),
      method: methodOf(call.endpoint),
      headers: {
        authorization: authorization(),
        accept: "application/json",
        "accept-encoding": "identity",
        "user-agent": "gatehouse",
        ...(body === null ? {} : { "content-type": "application/json" }),
      },
      body,
      timeoutMs,
      maxBytes: maxResponseBytes * (call.list ? listFactor : 1),
      signal: call.signal,
    };
  }

  function toError({ endpoint }: Call, bad: Bad, hasNewKey = false): ComputeError {
    const { kind, reason, answer } = bad;
    const status = answer?.status;
    const isRefusal = answer !== undefined && answer.status >= 400;
    return new ComputeError(kind, endpoint, describeFailure(endpoint, kind, reason, status), {
      reason,
      status,
      serviceMessage: isRefusal ? serviceMessage(answer, currentValue(apiKey)) : undefined,
      retryAfterMs: parseRetryAfter(answer?.retryAfter),
      hasNewKey,
    });
  }

  return { readWithRetries, change, close: () => agent.destroy() };
}

function goodOf({ endpoint }: Call, { answer, body }: Exclude<CallVerdict, Bad>): Good {
  return { endpoint, status: answer.status, body };
}

/**
 * Limits concurrency before the request, so that a call's timeout begins when it may be sent. Undefined when given up before
 * it began.
 */
function createSlots(count: number) {
  let free = count;
  const waiting = new Set<() => void>();

  return async <T>(work: () => Promise<T>, signal: AbortSignal | undefined) => {
    if (signal?.aborted) return undefined;
    if (free > 0) free -= 1;
    else {
      const { promise: isOurs, resolve } = Promise.withResolvers<boolean>();
      const begin = () => end(true);
      const end = (began: boolean) => {
        waiting.delete(begin);
        resolve(began);
      };
      waiting.add(begin);
      const listening = signal && addAbortListener(signal, () => end(false));
      const isTurn = await isOurs;
      listening?.[Symbol.dispose]();
      if (!isTurn) return undefined;
    }
    try {
      return await work();
    } finally {
      const [next] = waiting;
      if (next) next();
      else free += 1;
    }
  };
}

export type RetryDelays = typeof defaultDelays;

const defaultDelays = {
  /** Upper bound of the first wait; doubles each time. */
  baseMs: 250,
  /** The longest wait; a longer `Retry-After` means no retry. */
  maxMs: 5000,
  /** 0 ≤ random < 1. */
  random: Math.random,
};
const maxTries = 4;
/** Saved up, of all calls together. */
const mostRetries = 100;

/** How long to wait before retrying a read; undefined: give up. Full jitter on top of `Retry-After`. */
export function retryWaitMs(
  tries: number,
  retryAfterMs: number | undefined,
  delays: RetryDelays,
): number | undefined {
  if (tries >= maxTries) return undefined;
  const jitter = delays.random() * Math.min(delays.maxMs, delays.baseMs * 2 ** (tries - 1));
  if (retryAfterMs === undefined) return jitter;
  if (retryAfterMs > delays.maxMs) return undefined;
  return Math.min(delays.maxMs, retryAfterMs + jitter);
}

const maxRetryAfterMs = 3_600_000;

/** `Retry-After` in seconds or as a date (RFC 9110), as milliseconds from now, at most an hour; undefined if neither. */
export function parseRetryAfter(
  value: string | undefined,
  now: number = Date.now(),
): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d{1,9}(\.\d+)?$/.test(text))
    return Math.min(maxRetryAfterMs, Math.round(Number(text) * 1000));
  const at = /[a-z]{3}/i.test(text) ? parseTime(text) : undefined;
  return at === undefined ? undefined : Math.min(maxRetryAfterMs, Math.max(0, at - now));
}
