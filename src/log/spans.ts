import { randomBytes } from "node:crypto";
import { type SpanId, workNow } from "./ids.ts";

/** Something that took time. What leaves is scrubbed like the log; attributes without a dot in their name are ours. */
export interface Span {
  name: string;
  /** Milliseconds of the wall clock. */
  startMs: number;
  endMs: number;
  /** Default `internal`. */
  kind?: "internal" | "server" | "client";
  attributes?: Readonly<Record<string, string | number | boolean>>;
  /** Why it failed, if it did. */
  failed?: string | undefined;
}

/** A span with its place: without a parent it is the root of its trace. */
export interface PlacedSpan extends Span, SpanId {
  parent?: string | undefined;
}

/** Takes what has ended. A span without a place hangs from each parent of the current work; without work it is dropped. */
export interface Spans {
  ended(span: Span | PlacedSpan): void;
}

/** Runs what ends a span, and gives the span to `spans`, whichever way it ends. */
export async function spanned<T>(
  spans: Spans | undefined,
  span: Omit<Span, "endMs"> & Partial<SpanId>,
  act: () => Promise<T>,
): Promise<T> {
  const end = (failed?: string) => spans?.ended({ ...span, endMs: Date.now(), failed });
  try {
    const outcome = await act();
    end();
    return outcome;
  } catch (error) {
    end(error instanceof Error ? error.name : "error");
    throw error;
  }
}

export function placed(span: Span | PlacedSpan): PlacedSpan[] {
  if ("trace" in span && span.trace !== undefined) return [span];
  return (workNow()?.parents ?? []).map(({ trace, span: parent }) => ({
    ...span,
    trace,
    parent,
    span: randomBytes(8).toString("hex"),
  }));
}
