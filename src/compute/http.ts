import { setTimeout as wait } from "node:timers/promises";
import { Agent, Client } from "undici";
import type { buildConnector } from "undici";
import { fillPath, renderQuery, type BaseAddress } from "./address.ts";
import { judgeChange, judgeRead, type Verdict } from "./classify.ts";
import { connectOnce } from "./connect.ts";
import { methodOf, templateOf, type Endpoint } from "./endpoints.ts";
import { ComputeError, type ComputeErrorKind, type ComputeErrorReason } from "./errors.ts";
import { exchange, type Request } from "./exchange.ts";
import { describeFailure } from "./failure.ts";
import { parseRetryAfter, retryWaitMs, type RetryBudget, type RetryDelays } from "./retry.ts";
import { serviceMessage } from "./service-message.ts";
import { createSlots } from "./slots.ts";

export interface Call {
  endpoint: Endpoint;
  ids?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: object;
  /** Lists may be larger than records. */
  list?: boolean;
  signal?: AbortSignal | undefined;
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

export interface HttpSettings {
  base: BaseAddress;
  apiKey: string;
  timeoutMs: number;
  connections: number;
  maxResponseBytes: number;
  connect: buildConnector.connector;
  budget: RetryBudget;
  delays: RetryDelays;
  log: (event: object) => void;
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

  async function read(call: Call): Promise<Good> {
    const request = prepare(call);
    settings.budget.earn();
    for (let attempt = 1; ; attempt += 1) {
      const verdict = await slots
        .run(
          () =>
            timed(call.endpoint, attempt, async () => judgeRead(await exchange(agent, request))),
          call.signal,
        )
        .catch((error: unknown) => givenUp(error, call.signal));
      if ("body" in verdict) return verdict;
      const retryAfterMs = parseRetryAfter(verdict.answer?.retryAfter);
      const waitMs = retryWaitMs({ again: verdict.again, tries: attempt, retryAfterMs }, delays);
      if (waitMs === undefined || !settings.budget.spend()) throw toError(call.endpoint, verdict);
      settings.log({
        event: "compute.retry",
        endpoint: call.endpoint,
        attempt,
        reason: verdict.reason,
        waitMs,
      });
      await wait(waitMs, undefined, { signal: call.signal }).catch(() => {
        throw toError(call.endpoint, { kind: "unreachable", reason: "aborted", again: false });
      });
    }
  }

  async function change(call: Call): Promise<Good> {
    const request = prepare(call);
    const wire = { connected: false };
    const client = new Client(base.origin, { ...shared, connect: connectOnce(connect, wire) });
    try {
      const verdict = await timed(call.endpoint, 1, async () =>
        judgeChange(await exchange(client, request), wire.connected),
      );
      if ("body" in verdict) return verdict;
      throw toError(call.endpoint, verdict);
    } finally {
      // Not awaited: while a connection is still being opened that takes as long as opening it.
      client.destroy().catch(() => {});
    }
  }

  function prepare(call: Call): Request {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    return {
      origin: base.origin,
      path: base.prefix.concat(
        fillPath(templateOf(call.endpoint), call.ids ?? {}),
        renderQuery(call.query),
      ),
      method: methodOf(call.endpoint),
      headers: {
        authorization: `Bearer ${settings.apiKey}`,
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

  async function timed(
    endpoint: Endpoint,
    attempt: number,
    work: () => Promise<Verdict>,
  ): Promise<Verdict> {
    const startedAt = performance.now();
    const verdict = await work();
    settings.onCall({
      endpoint,
      attempt,
      durationMs: performance.now() - startedAt,
      ...(verdict.answer ? { status: verdict.answer.status } : {}),
      ...("kind" in verdict ? { kind: verdict.kind, reason: verdict.reason } : {}),
    });
    return verdict;
  }

  function toError(endpoint: Endpoint, verdict: Exclude<Verdict, Good>): ComputeError {
    const { kind, reason, answer } = verdict;
    return new ComputeError(
      kind,
      endpoint,
      describeFailure(endpoint, kind, reason, answer?.status),
      {
        reason,
        status: answer?.status,
        serviceMessage:
          answer && answer.status >= 400 ? serviceMessage(answer, settings.apiKey) : undefined,
        retryAfterMs: parseRetryAfter(answer?.retryAfter),
      },
    );
  }

  return { read, change, close: () => agent.destroy() };
}

/** The caller gave up while its call waited for a free connection. */
function givenUp(error: unknown, signal: AbortSignal | undefined): Exclude<Verdict, Good> {
  if (!signal?.aborted) throw error;
  return { kind: "unreachable", reason: "aborted", again: false };
}
