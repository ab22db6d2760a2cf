import { AsyncLocalStorage } from "node:async_hooks";
import { hash } from "node:crypto";
import {
  type Attributes,
  type Span as OpenSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  context,
  isSpanContextValid,
  trace as tracing,
} from "@opentelemetry/api";
import { version } from "../config/version.ts";
import { scrubText } from "./scrub.ts";

/**
 * Traces go through OpenTelemetry's API, which does nothing unless the operator loads an SDK
 * (docs/operate.md). BullMQ's own spans come from `bullmq-otel`, which carries a trace through the
 * queues. A request stores the span that made it, so that its trace continues in any process, even
 * after its job was lost.
 */
const tracer = () => tracing.getTracer("gatehouse", version);

/**
 * The current piece of work. Lines logged during it carry `ids`; spans begun during it belong to
 * `parents`.
 */
export interface Work {
  ids: Readonly<Record<string, string>>;
  /**
   * There are several parents when one call serves several requests; its spans then link to all of
   * them.
   */
  parents: readonly SpanContext[];
}

/**
 * The trace of the interaction that made a request, stored with the request so that any process can
 * continue the trace.
 */
export interface Traced {
  /** The delivery's ID. Undefined for a request that Gatehouse made itself. */
  interaction?: string;
  /** 32 hex digits. */
  trace?: string;
  /** The span that made the request: 16 hex digits. Undefined when no SDK recorded it. */
  parentSpan?: string;
}

const current = new AsyncLocalStorage<Work>();

export const workNow = (): Work | undefined => current.getStore();

/** Runs `act`, and all that it starts, as this work. */
export function during<T>(work: Work, act: () => T): T {
  const run = () => current.run(work, act);
  const [parent, ...others] = work.parents;
  // When a BullMQ job's span of the same trace is active, it is the closer parent and stays.
  const isNear = tracing.getActiveSpan()?.spanContext().traceId === parent?.traceId;
  if (!parent || others.length > 0 || isNear) return run();
  return context.with(tracing.setSpanContext(context.active(), parent), run);
}

/**
 * The trace ID for logs when no SDK is loaded. It is the same for each copy of a delivery and in
 * each process.
 */
const traceOf = (id: string) => hash("sha256", `trace ${id}`).slice(0, 32);

/** The trace of the active span, if an SDK records it. */
function activeTrace(): SpanContext | undefined {
  const active = tracing.getActiveSpan()?.spanContext();
  return active && isSpanContextValid(active) ? active : undefined;
}

export function workOnInteraction(id: string): Work {
  const trace = activeTrace()?.traceId ?? traceOf(id);
  return { ids: { interaction: id, trace }, parents: [] };
}

export function workOnRequest({
  id,
  interaction,
  trace = traceOf(id),
  parentSpan,
}: { id: string } & Traced): Work {
  const ids = { request: id, trace, ...(interaction === undefined ? {} : { interaction }) };
  if (parentSpan === undefined) return { ids, parents: [] };
  const parent: SpanContext = {
    traceId: trace,
    spanId: parentSpan,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  };
  return { ids, parents: isSpanContextValid(parent) ? [parent] : [] };
}

/** The work of one call that serves all of these requests. */
export function workOnRequests(requests: readonly ({ id: string } & Traced)[]): Work {
  const works = requests.map(workOnRequest);
  const [first] = works;
  const ids = works.length === 1 && first ? first.ids : {};
  return { ids, parents: works.flatMap(({ parents }) => parents) };
}

/** The trace of the current work, to be stored with a request that is made now. */
export function traceNow(): Traced {
  const { ids = {} } = workNow() ?? {};
  const { interaction, trace } = ids;
  const active = activeTrace();
  const isSampled = active !== undefined && (active.traceFlags & TraceFlags.SAMPLED) !== 0;
  return {
    ...(interaction === undefined ? {} : { interaction }),
    ...(active ? { trace: active.traceId } : trace !== undefined && { trace }),
    ...(isSampled && { parentSpan: active.spanId }),
  };
}

/**
 * An operation that took time. Values are scrubbed as in the log; attribute names without a dot get
 * the prefix `gatehouse.`.
 */
export interface Span {
  name: string;
  /** The default is `internal`. */
  kind?: "internal" | "server" | "client";
  attributes?: Readonly<Record<string, string | number | boolean | undefined>>;
}

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
} as const;

function optionsOf({ kind = "internal", attributes = {} }: Span) {
  const scrubbed: Attributes = {};
  for (const [name, value] of Object.entries(attributes))
    scrubbed[name.includes(".") ? name : `gatehouse.${name}`] =
      typeof value === "string" ? scrubText(value) : value;
  const parents = workNow()?.parents ?? [];
  const links = parents.length > 1 ? parents.map((parent) => ({ context: parent })) : [];
  return { kind: kinds[kind], attributes: scrubbed, links };
}

/** Runs `act` inside a span. Spans that it starts become children. */
export async function spanned<T>(span: Span, act: () => Promise<T>): Promise<T> {
  return await tracer().startActiveSpan(scrubText(span.name), optionsOf(span), async (open) => {
    try {
      return await act();
    } catch (error) {
      fail(open, error instanceof Error ? error.name : "error");
      throw error;
    } finally {
      open.end();
    }
  });
}

/** Records a span that is over. `failed` is the reason if it failed. */
export function recordSpan({
  startMs,
  endMs,
  failed,
  ...span
}: Span & { startMs: number; endMs: number; failed?: string | undefined }): void {
  const options = { ...optionsOf(span), startTime: startMs };
  const open = tracer().startSpan(scrubText(span.name), options);
  if (failed !== undefined) fail(open, failed);
  open.end(Math.max(startMs, endMs));
}

const fail = (span: OpenSpan, why: string) =>
  span.setStatus({ code: SpanStatusCode.ERROR, message: scrubText(why) });
