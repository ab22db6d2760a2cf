import { AsyncLocalStorage } from "node:async_hooks";
import { hash, randomBytes } from "node:crypto";

/** A span that others hang from: 32 and 16 hex digits, as in W3C's Trace Context. */
export interface SpanId {
  trace: string;
  span: string;
}

/** What is being worked on. Everything logged meanwhile carries `ids`; spans that begin meanwhile hang from `parents`. */
export interface Work {
  ids: Readonly<Record<string, string>>;
  /** Several where one call serves several requests. */
  parents: readonly SpanId[];
}

/** What a request keeps of the interaction that made it, so that any process goes on with its trace. */
export interface Origin {
  /** The delivery's ID; undefined for what Gatehouse asked for itself. */
  interaction?: string;
  /** 32 hex digits. */
  trace?: string;
  /** The span that made the request: 16 hex digits. */
  parentSpan?: string;
}

const current = new AsyncLocalStorage<Work>();

export const workNow = (): Work | undefined => current.getStore();

/** Runs `act`, and all that it starts, as this work. */
export const during = <T>(work: Work, act: () => T): T => current.run(work, act);

/** Spans are named by what they are about: every process knows the ID of a span that another one will send. */
const idOf = (what: string, digits: number) => hash("sha256", what).slice(0, digits);
const spanOf = (id: string) => idOf(`span ${id}`, 16);

/** A delivery that comes twice, or is taken over by another process, stays one trace. */
export function workOnInteraction(id: string): Work {
  const trace = idOf(`trace ${id}`, 32);
  return { ids: { interaction: id, trace }, parents: [{ trace, span: spanOf(id) }] };
}

export function workOnRequest({ id, interaction, trace }: { id: string } & Origin): Work {
  const own = trace ?? idOf(`trace ${id}`, 32);
  const ids = { request: id, trace: own, ...(interaction === undefined ? {} : { interaction }) };
  return { ids, parents: [{ trace: own, span: spanOf(id) }] };
}

/** One call that serves all of them. */
export function workOnRequests(requests: readonly ({ id: string } & Origin)[]): Work {
  const works = requests.map(workOnRequest);
  const [first] = works;
  const ids = works.length === 1 && first ? first.ids : {};
  return { ids, parents: works.flatMap(({ parents }) => parents) };
}

/** Where what is made now comes from. */
export function originNow(): Origin {
  const { ids = {}, parents = [] } = workNow() ?? {};
  const [parent] = parents;
  return {
    ...(ids["interaction"] === undefined ? {} : { interaction: ids["interaction"] }),
    ...(parent === undefined ? {} : { trace: parent.trace, parentSpan: parent.span }),
  };
}

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
