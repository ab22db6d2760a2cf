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

/** A call that was received completely, with its body. Nothing in it has been checked. */
export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  /** The address at the other end of the connection: the caller's, or a proxy's. */
  from: string;
  body: Buffer;
  /**
   * Aborted when the caller disconnects or the process stops. A route that waits then answers with
   * what is known.
   */
  signal: AbortSignal;
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

  constructor(
    status: number,
    title: string,
    detail?: string,
    more: ApiProblem["more"] = {},
    headers: ApiProblem["headers"] = {},
  ) {
    super(title);
    this.status = status;
    this.detail = detail;
    this.more = more;
    this.headers = headers;
  }
}

/** The answer is the same for a wrong secret, no secret, and an unknown name. */
export const unauthorized = () =>
  new ApiProblem(401, "Unauthorized", undefined, {}, { "www-authenticate": "Bearer" });

/** PagerDuty's largest body, and the limit for all (bytes). */
const maxBytes = 256 * 1024;
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
      const body = await bodyOf(request);
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const signal = AbortSignal.any([gone.signal, stopping.signal]);
      const from = request.socket.remoteAddress ?? "";
      const answered = await route.handle(
        { method, path: pathname, query, headers, from, body, signal },
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
      const { status, message: title, detail, more, headers: its } = problemOf(error);
      telemetry.apiCalls.inc({ route: name, outcome: String(status) });
      onAnswer?.(status);
      // A message about a field may contain the caller's own words.
      const why = status === 500 ? { error } : "field" in more ? more : { why: title };
      const refused = { route: name, caller, status, ...why };
      log[status === 500 ? "error" : "warn"]("api.refused", refused);
      return {
        status,
        headers: {
          "content-type": "application/problem+json",
          ...(status >= 500 ? { "retry-after": "1" } : {}),
          ...its,
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
  "too-large": [413, "The body is larger than 256 KB."],
  slow: [408, "The body took too long to arrive."],
} as const;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const [status, title] = bodyProblems["too-large"];
  if (Number(request.headers["content-length"] ?? 0) > maxBytes)
    throw new ApiProblem(status, title);
  const body = await readBody(request, { withinMs: deadlineMs(bodyWithinMs), maxBytes }).catch(
    () => {
      throw new ApiProblem(400, "The body was cut.");
    },
  );
  if (typeof body !== "string") return body;
  const [code, why] = bodyProblems[body];
  throw new ApiProblem(code, why);
}

/**
 * When something can't be stored now, the caller repeats the call. If Redis stored it and only its
 * answer was lost, the repetition changes nothing.
 */
function problemOf(error: unknown): ApiProblem {
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
