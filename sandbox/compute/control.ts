import { createServer, type IncomingMessage, type Server } from "node:http";
import { fieldsOf } from "./checks.ts";
import type { Edits } from "./edits.ts";
import type { SandboxCall } from "./journal.ts";
import type { Truth } from "./truth.ts";
import type { Storm, StormState } from "./weather.ts";

/** What tests look at and change, in this process or over the control port. */
export interface Controlled {
  seed: number;
  truth(only?: { touched?: boolean }): Truth;
  /** All calls, oldest first; those of refused keys and unknown paths too. */
  calls(): SandboxCall[];
  /** Calls that ask for a change. */
  writes(): SandboxCall[];
  forget(): void;
  /** Resolves once nothing is under way. */
  settled(): Promise<void>;
  /** Returns its id. */
  weather(weather: Storm): number;
  /** One, or all. */
  clear(id?: number): void;
  forecast(): StormState[];
  edit: Edits;
}

/**
 * The sandbox's remote control, for tests that run it as a process of its own:
 *
 *     GET    /_sandbox/truth[?touched=1]      GET    /_sandbox/calls[?after=n]     GET /_sandbox/writes[?after=n]
 *     POST   /_sandbox/forget                 GET    /_sandbox/settled (answers once nothing is under way)
 *     GET    /_sandbox/weather                POST   /_sandbox/weather {…} → {id}  DELETE /_sandbox/weather[?id=n]
 *     POST   /_sandbox/edit/renameVm {…}      and all other edits by their names   GET /_sandbox/health
 */
export function createControl(sandbox: Controlled): Server {
  async function act(method: string, url: URL, body: unknown): Promise<unknown> {
    const after = Number(url.searchParams.get("after") ?? 0);
    const [, what = "", which = ""] = url.pathname.slice(1).split("/");
    switch (`${method} ${what}`) {
      case "GET health":
        return { ok: true, seed: sandbox.seed };
      case "GET truth":
        return sandbox.truth({ touched: url.searchParams.has("touched") });
      case "GET calls":
        return sandbox.calls().filter((call) => call.n > after);
      case "GET writes":
        return sandbox.writes().filter((call) => call.n > after);
      case "POST forget":
        sandbox.forget();
        return {};
      case "GET settled":
        await sandbox.settled();
        return {};
      case "GET weather":
        return sandbox.forecast();
      case "POST weather":
        return { id: sandbox.weather(fieldsOf(body)) };
      case "DELETE weather":
        sandbox.clear(url.searchParams.has("id") ? Number(url.searchParams.get("id")) : undefined);
        return {};
      case "POST edit":
        return { result: edit(which, body) ?? null };
      default:
        return undefined;
    }
  }

  function edit(name: string, input: unknown): unknown {
    const found: unknown = Object.hasOwn(sandbox.edit, name)
      ? Reflect.get(sandbox.edit, name)
      : undefined;
    if (typeof found !== "function" || name.startsWith("find")) throw new Error(`no edit ${name}`);
    return Reflect.apply(found, undefined, [fieldsOf(input)]) as unknown;
  }

  return createServer((request, response) => {
    const answer = (status: number, value: unknown) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    const url = new URL(request.url ?? "/", "http://sandbox");
    readJson(request)
      .then((body) =>
        url.pathname.startsWith("/_sandbox/") ? act(request.method ?? "GET", url, body) : undefined,
      )
      .then((value) =>
        value === undefined ? answer(404, { error: "no such control" }) : answer(200, value),
      )
      .catch((error: unknown) =>
        answer(400, { error: error instanceof Error ? error.message : "failed" }),
      );
  });
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? {} : (JSON.parse(text) as unknown);
}
