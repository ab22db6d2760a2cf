import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { Agent, Client, type buildConnector } from "undici";
import type { Log } from "../log/log.ts";
import { serviceMessage } from "./body.ts";
import { type Endpoint, fillPath, methodOf, renderQuery } from "./compute.ts";
import {
  ComputeError,
  type ComputeErrorKind,
  type ComputeErrorReason,
  describeFailure,
} from "./errors.ts";
import {
  type Exchange,
  exchange,
  judgeChange,
  judgeRead,
  type Request,
  type Verdict,
} from "./exchange.ts";
import { type BaseAddress, connectOnce } from "./reach.ts";

interface Call {
  endpoint: Endpoint;
  ids?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: object;
  /** Lists may be larger than records. */
  list?: boolean;
  signal?: AbortSignal | undefined;
  /** Of a change: asked once connected; when false, nothing is sent (`unreachable`). */
  mayGoOn?: (() => Promise<boolean>) | undefined;
  /** Of a read: a good answer is complete, and its connection is free. */
  onAnswer?: (() => void) | undefined;
  /** Of a read: the caller knows this text, so it isn't parsed (`body: "same"`). */
  isSame?: ((text: string) => boolean) | undefined;
}

/** One try, for metrics. `kind` only when it failed. */
export interface CallReport {
  endpoint: Endpoint;
  /** 1 for the first; only reads have more. */
  attempt: number;
  status?: number;
  /** The `Date` of the answer. */
  date?: string | undefined;
  durationMs: number;
  kind?: ComputeErrorKind;
  reason?: ComputeErrorReason;
}

interface HttpSettings {
  base: BaseAddress;
  apiKey: () => string;
  refreshKey: () => void;
  timeoutMs: number;
  connections: number;
  maxResponseBytes: number;
  connect: buildConnector.connector;
  delays: RetryDelays;
  log: Log;
  onCall: (call: CallReport) => void;
}

export type Good = Extract<Verdict, { body: unknown }>;

export interface Http {
  /** Retried within the budget. Rejects with ComputeError or UserError. */
  read(call: Call): Promise<Good>;
  /** Sent at most once, on a connection of its own. Rejects with ComputeError or UserError. */
  change(call: Call): Promise<Good>;
  close(): Promise<void>;
}

const abandoned = { kind: "unreachable", reason: "aborted", again: false } as const;

/** Lists may be this many times larger than a record. */
const listFactor = 16;

export function createHttp(settings: HttpSettings): Http {
  const { base, timeoutMs, maxResponseBytes, connections, connect, delays } = settings;
  // Headers and body share the call's own timer (exchange.ts), which is exact; undici's are not.
  const shared = { allowH2: false, pipelining: 1, connect, headersTimeout: 0, bodyTimeout: 0 };
  const agent = new Agent({
    ...shared,
    connections,
    maxResponseSize: maxResponseBytes * listFactor,
  });
  const slots = createSlots(connections);
  const budget = createRetryBudget();

  async function read(call: Call): Promise<Good> {
    let request = prepare(call);
    budget.earn();
    for (let attempt = 1; ; attempt += 1) {
      const seen = await slots
        .run(() => clocked(() => exchange(agent, request)), call.signal)
        .catch((error: unknown) => {
          throw call.signal?.aborted ? toError(call.endpoint, abandoned) : error;
        });
      if (call.onAnswer && isWhole(seen.came)) {
        call.onAnswer();
        // The next call sends first: its answer travels while this one is parsed
        await turn();
      }
      const verdict = judgeRead(seen.came, call.isSame);
      report(call.endpoint, attempt, seen.durationMs, verdict);
      if ("body" in verdict) return verdict;
      if (verdict.answer?.status === 401 && hasNewerKey(request)) {
        request = prepare(call);
        continue;
      }
      const retryAfterMs = parseRetryAfter(verdict.answer?.retryAfter);
      const waitMs = retryWaitMs({ again: verdict.again, tries: attempt, retryAfterMs }, delays);
      if (waitMs === undefined || !budget.spend()) throw toError(call.endpoint, verdict);
      const { reason } = verdict;
      settings.log.info("compute.retry", { endpoint: call.endpoint, attempt, reason, waitMs });
      // Given up between tries: the last one is what is known
      await wait(waitMs, undefined, { signal: call.signal }).catch(() => {
        throw toError(call.endpoint, verdict);
      });
    }
  }

  async function change(call: Call): Promise<Good> {
    settings.refreshKey();
    const request = prepare(call);
    const wire = { connected: false };
    const client = new Client(base.origin, {
      ...shared,
      connect: connectOnce(connect, wire, call.mayGoOn),
    });
    try {
      const { came, durationMs } = await clocked(() => exchange(client, request));
      const verdict = judgeChange(came, wire.connected);
      report(call.endpoint, 1, durationMs, verdict);
      if ("body" in verdict) return verdict;
      // Not sent again, though a 401 says that nothing happened: one attempt is one send
      const hasNewKey = verdict.answer?.status === 401 && hasNewerKey(request);
      throw toError(call.endpoint, verdict, hasNewKey);
    } finally {
      // Not awaited: that would wait for a connection that is still being opened.
      client.destroy().catch(() => {});
    }
  }

  const authorization = () => `Bearer ${settings.apiKey()}`;

  /** Than the one that was refused. Another call may have found it, so what the look brings doesn't tell. */
  function hasNewerKey({ headers }: Request): boolean {
    settings.refreshKey();
    return headers["authorization"] !== authorization();
  }

  function prepare(call: Call): Request {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    return {
      origin: base.origin,
      path: base.prefix.concat(fillPath(call.endpoint, call.ids ?? {}), renderQuery(call.query)),
      method: methodOf(call.endpoint),
      headers: {
        authorization: authorization(),
        accept: "application/json",
        "user-agent": "gatehouse",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body,
      timeoutMs,
      maxBytes: maxResponseBytes * (call.list ? listFactor : 1),
      signal: call.signal,
    };
  }

  function report(endpoint: Endpoint, attempt: number, durationMs: number, verdict: Verdict): void {
    settings.onCall({
      endpoint,
      attempt,
      durationMs,
      ...(verdict.answer ? { status: verdict.answer.status, date: verdict.answer.date } : {}),
      ...("kind" in verdict ? { kind: verdict.kind, reason: verdict.reason } : {}),
    });
  }

  function toError(
    endpoint: Endpoint,
    verdict: Exclude<Verdict, Good>,
    hasNewKey = false,
  ): ComputeError {
    const { kind, reason, answer } = verdict;
    return new ComputeError(
      kind,
      endpoint,
      describeFailure(endpoint, kind, reason, answer?.status),
      {
        reason,
        status: answer?.status,
        serviceMessage:
          answer && answer.status >= 400 ? serviceMessage(answer, settings.apiKey()) : undefined,
        retryAfterMs: parseRetryAfter(answer?.retryAfter),
        hasNewKey,
      },
    );
  }

  return { read, change, close: () => agent.destroy() };
}

async function clocked(
  work: () => Promise<Exchange>,
): Promise<{ came: Exchange; durationMs: number }> {
  const startedAt = performance.now();
  const came = await work();
  return { came, durationMs: performance.now() - startedAt };
}

function isWhole(came: Exchange): boolean {
  return !("failure" in came) && came.status >= 200 && came.status < 300 && came.flaw === undefined;
}

/** Limits concurrency before the request, so that a call's timeout begins when it may be sent. */
function createSlots(count: number) {
  let free = count;
  const waiting = new Set<() => void>();

  async function enter(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      waiting.delete(resolve);
      reject(signal?.reason instanceof Error ? signal.reason : new Error("given up"));
    };
    waiting.add(resolve);
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  function leave(): void {
    const next = waiting.values().next().value;
    if (next === undefined) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  }

  return {
    /** Rejects with the signal's reason when given up while waiting. */
    async run<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
      await enter(signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}

/** 10% of calls, at most 100 saved up; with few calls, ten at once, then one every 2 s. */
const share = 0.1;
const most = 100;
const floor = 10;
const floorRefillMs = 2000;

/** Keeps retries from multiplying the load on a failing service. */
export function createRetryBudget(now: () => number = () => performance.now()) {
  let tokens = floor;
  let filledAt = now();
  return {
    /** A call was made: it earns a tenth of a retry. */
    earn(): void {
      tokens = Math.min(most, tokens + share);
    },
    /** Takes one retry if there is one. */
    spend(): boolean {
      const at = now();
      if (tokens < floor) tokens = Math.min(floor, tokens + (at - filledAt) / floorRefillMs);
      filledAt = at;
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
  };
}

export interface RetryDelays {
  /** Upper bound of the first wait; doubles each time. */
  baseMs: number;
  /** The longest wait; a longer `Retry-After` means no retry. */
  maxMs: number;
  /** 0 ≤ random < 1. */
  random: () => number;
}

export const defaultDelays: RetryDelays = { baseMs: 250, maxMs: 5000, random: Math.random };
const maxTries = 4;

/** How long to wait before retrying a read; undefined: give up. Full jitter on top of `Retry-After`. */
export function retryWaitMs(
  failed: { again: boolean; tries: number; retryAfterMs?: number | undefined },
  delays: RetryDelays,
): number | undefined {
  if (!failed.again || failed.tries >= maxTries) return undefined;
  const jitter = delays.random() * Math.min(delays.maxMs, delays.baseMs * 2 ** (failed.tries - 1));
  if (failed.retryAfterMs === undefined) return jitter;
  if (failed.retryAfterMs > delays.maxMs) return undefined;
  return Math.min(delays.maxMs, failed.retryAfterMs + jitter);
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
  const at = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.min(maxRetryAfterMs, Math.max(0, at - now));
}
