import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { Agent, Client } from "undici";
import type { buildConnector } from "undici";
import { fillPath, renderQuery, type BaseAddress } from "./address.ts";
import { judgeChange, judgeRead, type Verdict } from "./classify.ts";
import { connectOnce } from "./connect.ts";
import { methodOf, templateOf, type Endpoint } from "./endpoints.ts";
import { ComputeError, type ComputeErrorKind, type ComputeErrorReason } from "./errors.ts";
import { exchange, type Exchange, type Request } from "./exchange.ts";
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
  /** Of a change: asked when its connection stands; when it says no, nothing leaves us (`unreachable`). */
  mayGoOn?: (() => boolean) | undefined;
  /** Of a read: the last byte of a good answer is here, and its connection is free. */
  onAnswer?: (() => void) | undefined;
  /** Of a read: the caller knows what this text says, so it isn't parsed (`body: "same"`). */
  isSame?: ((text: string) => boolean) | undefined;
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

  async function read(call: Call): Promise<Good> {
    const request = prepare(call);
    settings.budget.earn();
    for (let attempt = 1; ; attempt += 1) {
      const seen = await slots
        .run(() => clocked(() => exchange(agent, request)), call.signal)
        .catch((error: unknown) => givenUp(error, call.signal));
      if (seen === undefined) throw toError(call.endpoint, abandoned);
      if (call.onAnswer && isWhole(seen.came)) {
        call.onAnswer();
        // Whoever waits for the connection sends first: while that is on its way, this answer is read
        await turn();
      }
      const verdict = judgeRead(seen.came, call.isSame);
      report(call.endpoint, attempt, seen.durationMs, verdict);
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
        throw toError(call.endpoint, abandoned);
      });
    }
  }

  async function change(call: Call): Promise<Good> {
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

  function report(endpoint: Endpoint, attempt: number, durationMs: number, verdict: Verdict): void {
    settings.onCall({
      endpoint,
      attempt,
      durationMs,
      ...(verdict.answer ? { status: verdict.answer.status } : {}),
      ...("kind" in verdict ? { kind: verdict.kind, reason: verdict.reason } : {}),
    });
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

/** The caller gave up while its call waited for a free connection. */
function givenUp(error: unknown, signal: AbortSignal | undefined): undefined {
  if (!signal?.aborted) throw error;
}
