import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { type Answer, errorAnswer, refusalAnswer } from "./answers.ts";
import type { SandboxEndpoint } from "./endpoints.ts";
import type { Journal, SandboxCall } from "./journal.ts";
import { Refusal } from "./records.ts";
import { send } from "./send.ts";
import type { Effect, Weather } from "./weather.ts";

const mostBodyBytes = 1024 * 1024;

export interface ReceiveSettings {
  /** Those that are accepted now. */
  keys: ReadonlySet<string>;
  endpoints: readonly SandboxEndpoint[];
  weather: Weather;
  journal: Journal;
  latencyMs: number;
  /** For effects that come later. */
  after: (ms: number, work: () => void) => void;
}

/**
 * One call, from its key to its answer. The order is the service's: key, path, method, content type, body; then the
 * weather: slow, redirect, error, lost or hanging before the effect; the effect; and what happens to the answer.
 */
export function createReceiver(settings: ReceiveSettings) {
  const route = createRouter(settings.endpoints);

  return (request: IncomingMessage, response: ServerResponse): void => {
    receive(request, response).catch(() => response.destroy());
  };

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const method = request.method ?? "GET";
    const call = settings.journal.open({ method, path, query });
    const close = (answer: SandboxCall["answer"]) => settings.journal.close(call, answer);
    const refuse = async (refusal: Refusal) =>
      close(await send(response, refusalAnswer(refusal), {}));

    const body = await readBody(request);
    if (!request.readableEnded && body === undefined) return close("lost");
    const [, key = ""] = /^Bearer (.*)$/.exec(request.headers.authorization ?? "") ?? [];
    if (!settings.keys.has(key)) {
      return refuse(new Refusal(401, "unauthorized", "the key is missing or wrong"));
    }
    const found = route(method, path);
    if (found === "no-path") return refuse(new Refusal(404, "not_found", "no such path"));
    if (found === "no-method")
      return refuse(new Refusal(405, "method_not_allowed", `${method} is not possible here`));
    call.route = found.endpoint.route;
    const parsed = body === undefined ? tooLarge : parseBody(request, body);
    if (parsed instanceof Refusal) return refuse(parsed);
    if (parsed.value !== undefined) call.body = parsed.value;

    const { effect, ids } = settings.weather.strike(method, path);
    call.weather = ids;
    const slowMs = settings.latencyMs + (effect.slowMs ?? 0);
    if (slowMs > 0) await wait(slowMs);

    const perform = (): Answer => {
      const done = found.endpoint.handle({
        ids: found.ids,
        query: new URLSearchParams(query),
        body: parsed.value,
        effect,
      });
      if (done instanceof Refusal) return refusalAnswer(done);
      if (method !== "GET" && done.status < 300) call.effect = true;
      return done;
    };
    close(await finish(response, effect, perform));
  }

  async function finish(
    response: ServerResponse,
    effect: Effect,
    perform: () => Answer,
  ): Promise<SandboxCall["answer"]> {
    const lose = () => {
      response.destroy();
      return "lost" as const;
    };
    if (effect.redirect !== undefined) {
      const headers = { location: effect.redirect };
      return send(response, { status: effect.redirectStatus ?? 307, body: "", headers }, effect);
    }
    if (effect.lateMs !== undefined) {
      settings.after(effect.lateMs, perform);
      return effect.hang === undefined ? lose() : "hung";
    }
    if (effect.status !== undefined) {
      if (effect.applied) perform();
      return send(response, errorAnswer(effect.status, effect.errorShape, effect.message), effect);
    }
    if (effect.lost === "before") return lose();
    if (effect.hang === "before") return "hung";
    const answer = perform();
    if (effect.lost === "after") return lose();
    if (effect.hang === "after") return "hung";
    return send(response, answer, effect);
  }
}

const tooLarge = new Refusal(413, "too_large", "the body is too large");

/** The body, or undefined when it is too large or never came whole. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request) {
      if (!Buffer.isBuffer(chunk)) continue;
      size += chunk.length;
      if (size <= mostBodyBytes) chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return size > mostBodyBytes ? undefined : Buffer.concat(chunks).toString("utf8");
}

function parseBody(request: IncomingMessage, body: string): { value?: unknown } | Refusal {
  if (body === "") return {};
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
    return new Refusal(415, "unsupported_media_type", "bodies are application/json");
  }
  try {
    return { value: JSON.parse(body) as unknown };
  } catch {
    return new Refusal(400, "bad_json", "the body is not JSON");
  }
}

/** Which endpoint a call means, or whether there is one with another method. */
function createRouter(endpoints: readonly SandboxEndpoint[]) {
  const table = endpoints.map((endpoint) => ({
    endpoint,
    pattern: new RegExp(`^${endpoint.route.replaceAll(/\{\w+\}/g, "([^/]+)")}$`),
  }));
  return (
    method: string,
    path: string,
  ): { endpoint: SandboxEndpoint; ids: string[] } | "no-path" | "no-method" => {
    let known = false;
    for (const { endpoint, pattern } of table) {
      const found = pattern.exec(path);
      if (!found) continue;
      known = true;
      if (endpoint.method === method) return { endpoint, ids: found.slice(1).map(decode) };
    }
    return known ? "no-method" : "no-path";
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
