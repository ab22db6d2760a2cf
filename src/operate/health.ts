import type { IncomingMessage, ServerResponse } from "node:http";
import { deadlineMs, within } from "../deadline.ts";
import { messageOf } from "../errors.ts";
import { shared } from "./checks/checks.ts";
import type { Log } from "../log/log.ts";
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
  const figures = shared(options.figures);
  const pages: Pages = {
    "/healthz": async (response) => sendHealth(response, options.alive()),
    "/readyz": readinessPage(options.ready),
    async "/metrics"(response) {
      const { type, text } = await figures();
      send(response, 200, type, text);
    },
  };
  const route = routeTo(pages, options.log);
  return startWebServer(options, (request, response) => {
    if (!route(request, response)) reply(response, 404, { problem: "no such page" });
  });
}

/**
 * A route for `/readyz` alone, for a port that answers others, too. It returns false for every other
 * address.
 */
export const readinessRoute = ({ ready, log }: Pick<HealthOptions, "ready" | "log">) =>
  routeTo({ "/readyz": readinessPage(ready) }, log);

type Page = (response: ServerResponse) => Promise<void>;
type Pages = Readonly<Record<string, Page>>;

function readinessPage(ready: HealthOptions["ready"]): Page {
  const late = () => `the check took longer than ${readyWithinMs / 1000} s`;
  // A check that fails or hangs counts as not ready, too.
  const problem = shared(() =>
    within(deadlineMs(readyWithinMs), Promise.try(ready), late).catch(messageOf),
  );
  return async (response) => sendHealth(response, await problem());
}

const routeTo =
  (pages: Pages, log: Log) =>
  (request: IncomingMessage, response: ServerResponse): boolean => {
    const asked = (request.url ?? "/").split("?", 1)[0] ?? "";
    const page = Object.hasOwn(pages, asked) ? pages[asked] : undefined;
    if (!page) return false;
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      reply(response, 405, { problem: "only GET" });
      return true;
    }
    page(response).catch((error: unknown) => {
      log.error("health.failed", { error });
      if (response.headersSent) response.destroy();
      else reply(response, 500, { problem: "internal error; see the log" });
    });
    return true;
  };

function sendHealth(response: ServerResponse, problem: string | undefined): void {
  if (problem === undefined) reply(response, 200, { ok: true });
  else reply(response, 503, { ok: false, problem });
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
