import { within } from "../deadline.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "./log.ts";
import { scrubText } from "./scrub.ts";
import { type PlacedSpan, type Spans, placed } from "./traces.ts";

const callMs = 10_000;
const farewellMs = 2_000;
/** Spans that wait for a collector; the oldest are dropped first. */
const maxWaiting = 4_096;
const maxBatch = 512;

interface ExportOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** What these spans are of: `service.name` and the like. */
  resource: Readonly<Record<string, string>>;
  log: Log;
  /** How often what has ended is sent (ms); default 1 s. */
  everyMs?: number;
}

/**
 * Sends spans to a collector: OTLP over HTTP, as JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp). Nothing waits
 * for it; without a collector spans are dropped, and the log says how many.
 */
export function startExport(options: ExportOptions): Spans & { close(): Promise<void> } {
  const { url, headers, log, everyMs = 1_000 } = options;
  let waiting: PlacedSpan[] = [];
  let sending: Promise<void> | undefined;
  let isFailing = false;
  let dropped = 0;

  const send = () => (sending ??= sendAll().finally(() => (sending = undefined)));
  const timer = setInterval(() => void send(), everyMs).unref();

  async function sendAll(): Promise<void> {
    for (let isTaken = true; isTaken && waiting.length > 0;) {
      const batch = waiting.splice(0, maxBatch);
      const why = await post(batch);
      isTaken = why === undefined;
      if (!isTaken && !isFailing) log.warn("traces.not-sent", { why });
      if (isTaken && isFailing) log.warn("traces.sent-again", { dropped });
      if (isTaken) dropped = 0;
      else waiting = [...batch, ...waiting];
      isFailing = !isTaken;
    }
  }

  /** Why it may be repeated, or undefined: taken, or refused for good. */
  async function post(batch: readonly PlacedSpan[]): Promise<string | undefined> {
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(toOtlp(batch, options.resource)),
        redirect: "error",
        signal: AbortSignal.timeout(callMs),
      });
      await response.body?.cancel();
      if (response.ok) return undefined;
      if ([429, 502, 503, 504].includes(response.status)) return `status ${response.status}`;
      dropped += batch.length;
      log.warn("traces.refused", { status: response.status, spans: batch.length });
      return undefined;
    } catch (error) {
      return messageOf(error instanceof Error && error.cause ? error.cause : error);
    }
  }

  return {
    ended(span) {
      waiting.push(...placed(span));
      dropped += waiting.splice(0, Math.max(0, waiting.length - maxWaiting)).length;
    },
    async close() {
      clearInterval(timer);
      await within(farewellMs, send(), () => undefined);
    },
  };
}

const kinds = { internal: 1, server: 2, client: 3 } as const;

/** https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto */
export function toOtlp(spans: readonly PlacedSpan[], resource: Readonly<Record<string, string>>) {
  const resourceSpan = {
    resource: { attributes: attributesOf(resource) },
    scopeSpans: [{ scope: { name: "gatehouse" }, spans: spans.map(spanOf) }],
  };
  return { resourceSpans: [resourceSpan] };
}

function spanOf(span: PlacedSpan) {
  const { trace, parent, failed, startMs, endMs } = span;
  return {
    traceId: trace,
    spanId: span.span,
    ...(parent === undefined ? {} : { parentSpanId: parent }),
    name: scrubText(span.name),
    kind: kinds[span.kind ?? "internal"],
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(Math.max(startMs, endMs)),
    attributes: attributesOf(span.attributes ?? {}),
    status: failed === undefined ? {} : { code: 2, message: scrubText(failed) },
  };
}

/** 64-bit numbers are texts in this JSON. */
const nanos = (ms: number) => `${Math.round(ms * 1000)}000`;

function attributesOf(attributes: Readonly<Record<string, string | number | boolean>>) {
  return Object.entries(attributes).map(([name, value]) => {
    const key = name.includes(".") ? name : `gatehouse.${name}`;
    if (typeof value === "string") return { key, value: { stringValue: scrubText(value) } };
    if (typeof value === "boolean") return { key, value: { boolValue: value } };
    return { key, value: { intValue: `${Math.round(value)}` } };
  });
}
