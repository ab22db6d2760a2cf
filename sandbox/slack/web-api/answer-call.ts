import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Fields, textOf } from "../fields.ts";
import type { Workspace } from "../state/workspace.ts";
import type { CallLog } from "./call-log.ts";
import { argumentsOf } from "./http-body.ts";
import { methods } from "./methods/index.ts";
import { Call, type Method, Refused } from "./methods/method.ts";
import type { RateCounter } from "./rate-limits.ts";
import type { Storm, Weather } from "./weather.ts";

export interface ApiParts {
  workspace: Workspace;
  weather: Weather;
  rates: RateCounter;
  calls: CallLog;
}

/** Answers one call of the Web API, in whatever weather. */
export async function answerCall(
  parts: ApiParts,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  query: URLSearchParams,
): Promise<void> {
  const given = await argumentsOf(request, body, query);
  const { token: bodyToken, ...args } = given ?? {};
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? textOf(bodyToken);
  const carryOut = () =>
    given === undefined
      ? { ok: false, error: "invalid_json" }
      : outcomeOf(parts, name, token, args);
  const { app } = parts.workspace;
  if (token === app.botToken) response.setHeader("x-oauth-scopes", app.scopes.join(","));
  await inWeather(parts, name, args, response, carryOut);
}

/** Something a call answers: the JSON body, its status, and headers. */
export interface Answer {
  body: Fields | string;
  status?: number;
  headers?: Record<string, string>;
}

/** Carries a call out as the weather lets it, answers or doesn't, and logs what really happened. */
export async function inWeather(
  parts: ApiParts,
  method: string,
  args: Fields,
  response: ServerResponse,
  carryOut: () => Fields | Answer,
): Promise<void> {
  const storm = parts.weather.strike(method, args);
  const at = parts.workspace.now();
  const log = (record: { ok: boolean; status: number; error?: string }) =>
    parts.calls.add({ method, args, at, ...record, ...(storm ? { weather: storm.kind } : {}) });
  if (storm?.kind === "slow") await delay(storm.ms ?? 1000);
  const early = storm ? instead(storm) : undefined;
  if (
    storm &&
    (storm.kind === "lost-before" || early || (storm.kind === "hang" && !storm.applied))
  ) {
    log({ ok: false, status: early?.status ?? 0, error: textOf(early?.error, storm.kind) });
    if (early) send(response, early);
    else if (storm.kind === "lost-before") response.socket?.destroy();
    return;
  }
  const waitSeconds = parts.rates.take(method, textOf(args["channel"]), parts.workspace.now());
  if (waitSeconds !== undefined) {
    log({ ok: false, status: 429, error: "ratelimited" });
    send(response, tooMany(waitSeconds));
    return;
  }
  const done = carryOut();
  const answer: Answer = isAnswer(done) ? done : { body: done };
  const error =
    typeof answer.body === "string" ? undefined : textOf(answer.body["error"]) || undefined;
  const status = answer.status ?? 200;
  const ok = status < 300 && error === undefined;
  log({ ok, status, ...(error === undefined ? {} : { error }) });
  if (storm?.kind === "lost-after") response.socket?.destroy();
  else if (storm?.kind === "server-error")
    send(response, { status: storm.status ?? 503, body: "upstream connect error" });
  else if (storm?.kind !== "hang") send(response, answer);
}

function isAnswer(value: Fields | Answer): value is Answer {
  return "body" in value;
}

function tooMany(seconds: number): Answer {
  return {
    status: 429,
    body: { ok: false, error: "ratelimited" },
    headers: { "retry-after": String(seconds) },
  };
}

/** What is answered without the call being carried out; undefined when it is (or nothing is answered). */
function instead(storm: Storm): (Answer & { error: string }) | undefined {
  if (storm.kind === "rate-limited")
    return { ...tooMany(storm.retryAfter ?? 1), error: "ratelimited" };
  if (storm.kind === "error")
    return {
      body: { ok: false, error: storm.error ?? "internal_error" },
      error: storm.error ?? "internal_error",
    };
  if (storm.kind === "server-error" && !storm.applied) {
    return { status: storm.status ?? 503, body: "upstream connect error", error: "server-error" };
  }
  return undefined;
}

function outcomeOf({ workspace }: ApiParts, name: string, token: string, args: Fields): Fields {
  const method = methods.get(name);
  if (!method) return { ok: false, error: "unknown_method", req_method: name };
  const refused = tokenRefusal(workspace, method, token);
  if (refused) return { ok: false, ...refused };
  try {
    return { ok: true, ...method.run(new Call(workspace, args)) };
  } catch (error) {
    if (error instanceof Refused) return { ok: false, error: error.message, ...error.more };
    throw error;
  }
}

function tokenRefusal(workspace: Workspace, method: Method, token: string): Fields | undefined {
  const { app } = workspace;
  if (method.token === "none") return undefined;
  if (token === "") return { error: "not_authed" };
  if (token !== app.botToken && token !== app.appToken) return { error: "invalid_auth" };
  if (workspace.people.get(app.botUserId)?.active !== true) return { error: "account_inactive" };
  if ((token === app.appToken) !== (method.token === "app"))
    return { error: "not_allowed_token_type" };
  if (method.scopes.length > 0 && !method.scopes.some((scope) => app.scopes.includes(scope))) {
    return {
      error: "missing_scope",
      needed: method.scopes.join(","),
      provided: app.scopes.join(","),
    };
  }
  return undefined;
}

export function send(response: ServerResponse, answer: Answer): void {
  const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
  const type =
    typeof answer.body === "string"
      ? "text/plain; charset=utf-8"
      : "application/json; charset=utf-8";
  response.writeHead(answer.status ?? 200, { "content-type": type, ...answer.headers });
  response.end(text);
}
