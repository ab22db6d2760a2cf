import type { IncomingMessage, ServerResponse } from "node:http";
import { deadlineMs, within } from "../deadline.ts";
import { messageOf } from "../errors.ts";
import { shared } from "./checks/checks.ts";
import { type PortOptions, startWebServer } from "./web-server.ts";

export interface HealthOptions extends PortOptions {
  /** The content of `/metrics`, and its content type. */
  figures(): Promise<{ type: string; text: string }>;
  /** Why this process should be restarted. Undefined while it works. */
  alive(): string | undefined;
  /**
   * Why this process isn't ready. Undefined when it is. An answer after more than 2 s counts as not
   * ready.
   */
  ready(): Promise<string | undefined>;
}

const readyWithinMs = 2_000;

/**
 * Serves the probes and metrics of this process: `/healthz`, `/readyz`, `/metrics`. Throws when the
 * port is in use.
 */
export function startHealth(options: HealthOptions) {
  const late = () => `the check took longer than ${readyWithinMs / 1000} s`;
  // A check that fails or hangs counts as not ready, too.
  const ready = shared(() =>
    within(deadlineMs(readyWithinMs), Promise.try(options.ready), late).catch(messageOf),
  );
  const figures = shared(options.figures);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = (request.url ?? "/").split("?", 1)[0];
    if (asked !== "/healthz" && asked !== "/readyz" && asked !== "/metrics")
      return reply(response, 404, { problem: "no such page" });
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return reply(response, 405, { problem: "only GET" });
    }
    if (asked === "/metrics") {
      const { type, text } = await figures();
      return send(response, 200, type, text);
    }
    const problem = asked === "/healthz" ? options.alive() : await ready();
    return problem === undefined
      ? reply(response, 200, { ok: true })
      : reply(response, 503, { ok: false, problem });
  }

  return startWebServer(options, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      options.log.error("health.failed", { error });
      if (response.headersSent) response.destroy();
      else reply(response, 500, { problem: "internal error; see the log" });
    });
  });
}

function reply(response: ServerResponse, status: number, body: object): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(body)}\n`);
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}
