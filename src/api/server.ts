import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import { redisTrouble } from "../redis/redis.ts";
import type { Journal } from "../core/request/journal.ts";
import { CannotTell } from "../slack/people/cannot-tell.ts";
import { parseJson } from "../text/parse-json.ts";
import { readBody } from "./read-body.ts";
import { deadlineMs } from "../deadline.ts";

/** A call as its headers tell it. Nothing in it has been checked. */
export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  /** The address at the other end of the connection: the caller's, or a proxy's. */
  from: string;
  /** Reads the whole body, once. Throws ApiProblem when it is too large, too slow, or cut. */
  readBody(limits?: BodyLimits): Promise<Buffer>;
  /**
   * Aborted when the caller disconnects or the process stops. A route that waits then answers with
   * what is known.
   */
  signal: AbortSignal;
}

export interface BodyLimits {
  /** The largest body that is read (bytes). By default 256 KB. */
  mostBytes?: number;
  /**
   * Whether the caller has proved who it is. What others send beyond 256 KB shares one small
   * amount of memory.
   */
  isProven?: boolean;
}

export interface Answered {
  status: number;
  /** JSON. Undefined for an empty body. */
  body?: object | undefined;
  headers?: Readonly<Record<string, string>>;
}

/**
 * A route calls `named` once the caller has proved who it is. From then on, the call counts toward
 * that caller's limit.
 */
export type Handle = (
  call: Call,
  named: (caller: string, perMinute: number) => Promise<void>,
) => Promise<Answered>;

/** A route of the API. The first route whose path matches answers; `methods` are in capitals. */
export interface Route {
  /** The name in metrics: `alerts`, `proposals`, `reads`, `mcp`. */
  name: string;
  path: RegExp;
  methods: readonly string[];
  /**
   * The status for a caller over its limit, if that caller would never repeat a call after 429. By
   * default 429.
   */
  busy?: 503;
  handle: Handle;
}

/**
 * A problem with a call, in the form of RFC 9457. `detail` may name the field and never repeats its
 * value.
 */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  readonly status: number;
  readonly detail: string | undefined;
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** For the log alone: what an operator can do, where the caller isn't told. */
  readonly hint: string | undefined;

  constructor(
    status: number,
    title: string,
    detail?: string,
    more: ApiProblem["more"] = {},
    headers: ApiProblem["headers"] = {},
    hint?: string,
  ) {
    super(title);
    this.status = status;
    this.detail = detail;
    this.more = more;
    this.headers = headers;
    this.hint = hint;
  }
}

/** The sender disconnected before the end of its body, so nobody reads this answer. */
export class CutBody extends ApiProblem {
  constructor() {
    super(400, "The body was cut.");
  }
}

/**
 * The answer is the same for a wrong secret, no secret, an unknown name, and a wrong date. `hint`
 * says to the log what the answer doesn't.
 */
export const unauthorized = (hint?: string) =>
  new ApiProblem(401, "Unauthorized", undefined, {}, { "www-authenticate": "Bearer" }, hint);

/** PagerDuty's largest body, and the limit for all but proven sources of alerts (bytes). */
const usualBytes = 256 * 1024;
/** How much of larger bodies is held together for callers that haven't proved who they are (bytes). */
const unprovenBytes = 16 * 1024 * 1024;
/** PagerDuty waits for 5 s, Alertmanager for 10 s. */
const bodyWithinMs = 4_000;

/**
 * How long the rest of an unwanted body is still read (ms). Otherwise a reset of the connection
 * would overtake the answer.
 */
const lingerMs = 1_000;

interface ApiOptions {
  store: Pick<Journal, "takeApiPlace" | "noteApiCall">;
  /** Called when a caller exceeds its limit, such as `60 calls a minute`. */
  onLimit(caller: string, limit: string): Promise<void>;
  log: Log;
  routes: readonly Route[];
  telemetry: Pick<Telemetry, "apiCalls">;
  /** Called with the status of each answer. */
  onAnswer?: (status: number) => void;
}

/**
 * These have a sample from the start, so that an alert on their growth sees the first event, too.
 */
const usualOutcomes = ["ok", "401", "429", "500", "503"];

/**
 * Answers the calls of the API, with one route for each kind of caller and problems in one form.
 */
export function createApi({ routes, store, telemetry, onLimit, onAnswer, log }: ApiOptions) {
  const stopping = new AbortController();
  const readBodyOf = bodyReader();
  for (const { name } of routes)
    for (const outcome of usualOutcomes) telemetry.apiCalls.inc({ route: name, outcome }, 0);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<Answered> {
    const { url = "/", headers } = request;
    const { pathname = "", searchParams: query = new URLSearchParams() } =
      URL.parse(url, "http://api") ?? {};
    // A proxy in front decides by the path as it was sent, not by where `..` in it leads.
    const isAsSent = url.split(/[?#]/, 1)[0] === pathname;
    const fitting = isAsSent ? routes.filter(({ path }) => path.test(pathname)) : [];
    const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
    const route = fitting.find(({ methods }) => methods.includes(method));
    const name = route?.name ?? "none";
    let caller: string | undefined;
    const named = async (who: string, perMinute: number) => {
      caller = who;
      const how = { windowMs: 60_000, most: perMinute };
      const waitMs = await store.takeApiPlace(who, randomUUID(), how);
      if (waitMs === 0) return;
      await onLimit(who, `${perMinute} calls a minute`);
      const after = { "retry-after": String(Math.ceil(waitMs / 1000)) };
      const [title, way] = ["Too many calls within a minute.", "Wait, then repeat the call."];
      throw new ApiProblem(route?.busy ?? 429, title, way, {}, after);
    };
    try {
      if (fitting.length === 0) throw new ApiProblem(404, "There is nothing at this address.");
      if (!route) throw notAllowed(fitting);
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const signal = AbortSignal.any([gone.signal, stopping.signal]);
      const from = request.socket.remoteAddress ?? "";
      const answered = await route.handle(
        {
          method,
          path: pathname,
          query,
          headers,
          from,
          signal,
          readBody: async (limits) => readBodyOf(request, limits),
        },
        named,
      );
      const { status } = answered;
      // MCP refuses calls in a form of its own.
      const isTaken = status < 400;
      telemetry.apiCalls.inc({ route: name, outcome: isTaken ? "ok" : String(status) });
      onAnswer?.(status);
      // The answer neither waits for this nor fails with it.
      if (isTaken && caller !== undefined)
        void store
          .noteApiCall(method === "GET" ? "reads" : name, caller)
          .catch((error: unknown) => log.debug("api.call-not-noted", { why: messageOf(error) }));
      log.info(isTaken ? "api.answered" : "api.refused", { route: name, caller, status });
      return answered;
    } catch (error) {
      const {
        status,
        message: title,
        detail,
        more,
        headers: problemHeaders,
        hint,
      } = problemOf(error);
      telemetry.apiCalls.inc({ route: name, outcome: String(status) });
      onAnswer?.(status);
      // A message about a field may contain the caller's own words.
      const why = status === 500 ? { error } : "field" in more ? more : { why: title };
      const refused = { route: name, caller, status, ...why, hint };
      log[status === 500 ? "error" : "warn"]("api.refused", refused);
      return {
        status,
        headers: {
          "content-type": "application/problem+json",
          ...(status >= 500 ? { "retry-after": "1" } : {}),
          ...problemHeaders,
        },
        body: { type: "about:blank", title, status, ...(detail ? { detail } : {}), ...more },
      };
    }
  }

  return {
    listener(this: void, request: IncomingMessage, response: ServerResponse): void {
      answer(request, response)
        .then((answered) => send(answered, request, response, stopping.signal.aborted))
        .catch((error: unknown) => {
          log.warn("api.broken", { why: messageOf(error) });
          response.destroy();
        });
    },
    /** Ends the calls that wait, and closes each connection with its answer. */
    stop: () => stopping.abort(),
  };
}

function notAllowed(fitting: readonly Route[]): ApiProblem {
  const allow = [...new Set(fitting.flatMap(({ methods }) => methods))].join(", ");
  return new ApiProblem(
    405,
    "This address takes other methods.",
    `Allowed: ${allow}.`,
    {},
    { allow },
  );
}

const bodyProblems = {
  "too-large": (mostBytes: number) =>
    new ApiProblem(413, `The body is larger than ${sizeInWords(mostBytes)}.`),
  slow: () => new ApiProblem(408, "The body took too long to arrive."),
  "no-room": () =>
    new ApiProblem(503, "Too many large bodies at once.", "Wait, then repeat the call."),
};

const sizeInWords = (bytes: number) =>
  bytes < 1024 ** 2 ? `${bytes / 1024} KB` : `${bytes / 1024 ** 2} MB`;

/** Reads bodies, and bounds what callers that haven't proved who they are make it hold together. */
function bodyReader() {
  let held = 0;
  return async (
    request: IncomingMessage,
    { mostBytes = usualBytes, isProven = false }: BodyLimits = {},
  ): Promise<Buffer> => {
    if (Number(request.headers["content-length"] ?? 0) > mostBytes)
      throw bodyProblems["too-large"](mostBytes);
    let own = 0;
    const mayHold = (size: number) => {
      const beyond = isProven ? 0 : Math.max(0, size - usualBytes);
      held += beyond - own;
      own = beyond;
      return held <= unprovenBytes;
    };
    const limits = { withinMs: deadlineMs(bodyWithinMs), maxBytes: mostBytes, mayHold };
    const body = await readBody(request, limits)
      .catch(() => {
        throw new CutBody();
      })
      .finally(() => mayHold(0));
    if (typeof body !== "string") return body;
    throw bodyProblems[body](mostBytes);
  };
}

/**
 * When something can't be stored now, the caller repeats the call. If Redis stored it and only its
 * answer was lost, the repetition changes nothing.
 */
export function problemOf(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  if (error instanceof CannotTell) return new ApiProblem(503, error.message, error.hint);
  const trouble = redisTrouble(error);
  if (trouble) return new ApiProblem(503, "Gatehouse can't store anything now; repeat the call.");
  return new ApiProblem(500, "Gatehouse failed; its log says why.");
}

function send(
  { status, body, headers }: Answered,
  request: IncomingMessage,
  response: ServerResponse,
  isLast: boolean,
) {
  if (!request.complete)
    response.once("finish", () => {
      request.resume();
      setTimeout(() => void (request.complete || request.destroy()), lingerMs).unref();
    });
  const text = body === undefined ? "" : `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-length": Buffer.byteLength(text),
    ...(isLast ? { connection: "close" } : {}),
    ...headers,
  });
  response.end(text);
}

const deepest = 20;

/**
 * Parses the JSON of a body. Throws ApiProblem for a body that isn't UTF-8 or JSON, or is nested
 * too deeply.
 */
export function jsonOf(body: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw new ApiProblem(400, "The body is not UTF-8.");
  }
  const value = parseJson(text);
  if (value === undefined) throw new ApiProblem(400, "The body is not JSON, or was cut.");
  if (isDeeper(value, deepest))
    throw new ApiProblem(400, `The body is nested deeper than ${deepest} levels.`);
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1));
}
