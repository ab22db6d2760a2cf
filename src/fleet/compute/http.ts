import { setTimeout as wait } from "node:timers/promises";
import { Agent, Client, type Dispatcher } from "undici";
import type { LookupFunction } from "node:net";
import { UserError } from "../../errors.ts";
import { type Live, currentValue } from "../../config/changing-file.ts";
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
  saysFailure,
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
import type { PagingHeaders } from "./paging.ts";
import { type RetryDelays, defaultDelays, parseRetryAfter, retryWaitMs } from "./retry.ts";
import { createSlots } from "./slots.ts";
import { connectOnce, createConnector, parseBaseUrl } from "./reach.ts";

export interface ComputeOptions {
  /** `https://host[/prefix]`, as `addressProblem` allows it. */
  baseUrl: string;
  /** One word of ASCII characters. It may be replaced while the process runs. */
  apiKey: Live;
  /** Looks for a newer key. It is called before each change, and after a 401. */
  refreshKey?: () => void;
  /** The limit of one attempt: connecting, sending, and reading the whole answer. */
  timeoutMs: number;
  /** Concurrent reads; default 32. Each change has its own connection. */
  connections?: number;
  /** The largest answer with one record; default 1 MiB. A list may be 16 times as large. */
  maxResponseBytes?: number;
  /**
   * Lets a public host name resolve to private addresses, or to these ranges, but never to
   * link-local ones (metadata services).
   */
  allowPrivate?: boolean | readonly string[];
  /** Read for each connection. */
  tls?: () => ComputeTls;
  /** The address of a proxy that tunnels (CONNECT). */
  proxy?: string | undefined;
  log?: Log;
  /** Called after each attempt. */
  onCall?: (call: CallReport) => void;
  retryDelays?: Partial<RetryDelays>;
  /** Replaces DNS. */
  lookup?: LookupFunction;
}

interface Call {
  endpoint: Endpoint;
  /** The ID of the VM or project in the path. */
  id?: string;
  query?: Readonly<Record<string, string>>;
  body?: object | undefined;
  /** True for a list, which may be larger than a record. */
  list?: boolean;
  signal?: AbortSignal | undefined;
  /**
   * For a change: asked once the connection is open. If it resolves to false, nothing is sent
   * (`unreachable`).
   */
  mayGoOn?: (() => Promise<boolean>) | undefined;
}

/** One attempt, for metrics. `kind` is set only when it failed. */
export interface CallReport {
  endpoint: Endpoint;
  /** 1 for the first attempt. Only reads are attempted again. */
  attempt: number;
  status?: number;
  durationMs: number;
  kind?: ComputeErrorKind;
  reason?: ComputeErrorReason;
}

/** A 2xx answer that was received completely. */
export interface Good {
  endpoint: Endpoint;
  status: number;
  body: Body;
  pagingHeaders: PagingHeaders;
  /** Set for a read whose answer says that it failed: the service's own words, if it has some. */
  complaint?: { message: string | undefined };
}

export type Http = ReturnType<typeof createHttp>;

/** The most retries that all calls together can save up. */
const mostRetries = 100;
/** A list may be this many times larger than a record. */
const listFactor = 16;

/** Throws UserError for a base URL or key that can't be used. */
export function createHttp(options: ComputeOptions) {
  const { apiKey, refreshKey, timeoutMs, onCall, log = silentLog() } = options;
  const { connections = 32, maxResponseBytes = 1024 * 1024 } = options;
  // These are the characters that HTTP allows in a header value, except spaces (RFC 6750 allows
  // fewer).
  if (!/^[\x21-\x7e]+$/.test(currentValue(apiKey)))
    throw new UserError("The compute service's key is empty or contains invalid characters");
  const base = parseBaseUrl(options.baseUrl, options.allowPrivate ?? false);
  const connect = createConnector({ ...options, base });
  const delays = { ...defaultDelays, ...options.retryDelays };
  // Headers and body share the call's own timer (exchange.ts), which is exact; undici's timers are
  // not.
  const shared = { allowH2: false, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 };
  const agent = new Agent({ ...shared, connect, connections });
  const inSlot = createSlots(connections);
  /**
   * The number of retries that may be used now. Each call adds a tenth, so that retries can't
   * multiply the load on a failing service.
   */
  let retries = 10;

  /** Sends a read, and retries it within the budget. Rejects with ComputeError or UserError. */
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
      // The caller gave up between two attempts, so the result of the last one is reported.
      await wait(waitMs, undefined, { signal: call.signal }).catch(() => {
        throw toError(call, verdict);
      });
    }
  }

  /**
   * Sends a change at most once, on a connection of its own. Rejects with ComputeError or
   * UserError.
   */
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
      // The change isn't sent again, even though a 401 proves that nothing happened: one attempt is
      // one send.
      throw toError(call, verdict, verdict.answer?.status === 401 && hasNewerKey(request));
    } finally {
      // This isn't awaited, because it would wait for a connection that is still being opened.
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

  /**
   * Whether there is a newer key than the one that was refused. The keys are compared because
   * another call may have loaded the new one already.
   */
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
    const isRefusal = answer !== undefined && (answer.status >= 400 || reason === "says-failure");
    return new ComputeError(kind, endpoint, describeFailure(endpoint, kind, reason, status), {
      reason,
      status,
      serviceMessage: isRefusal ? serviceMessage(answer, currentValue(apiKey)) : undefined,
      retryAfterMs: parseRetryAfter(answer?.retryAfter),
      hasNewKey,
    });
  }

  function goodOf({ endpoint }: Call, { answer, body }: Exclude<CallVerdict, Bad>): Good {
    const complaint = saysFailure(body)
      ? { message: serviceMessage(answer, currentValue(apiKey)) }
      : undefined;
    return {
      endpoint,
      status: answer.status,
      body,
      pagingHeaders: answer.paging,
      ...(complaint ? { complaint } : {}),
    };
  }

  return { readWithRetries, change, close: () => agent.destroy() };
}
