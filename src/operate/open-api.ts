import type { Config } from "../config/config.ts";
import type { Journal } from "../core/request/journal.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import { type Message } from "../messages/blocks.ts";
import { sentence } from "../messages/card.ts";
import { md, plain } from "../messages/markdown.ts";
import type { Gateway } from "./gateway.ts";
import { readinessRoute } from "./health.ts";
import type { Opened } from "./opened.ts";
import type { Services } from "./services.ts";
import { startWebServer } from "./web-server.ts";

interface ApiParts {
  config: Config;
  store: Journal;
  log: Log;
  telemetry: Telemetry;
  opened: Opened;
  at: Services["at"];
  announceIn: Services["announceIn"];
  features: Services["features"];
  tallies: Services["tallies"];
}

/** Opens the port of the API. Resolves with its number. */
export async function openApi(
  { port, host }: { port: number; host: string | undefined },
  on: ApiParts,
  {
    contextNow,
    ready,
  }: {
    contextNow: Gateway["contextNow"];
    /** Resolves with the reason why the API gets no work now. */
    ready(): Promise<string | undefined>;
  },
): Promise<number> {
  const { config, store, log, telemetry, opened, tallies, features } = on;
  const { createApi } = await import("../api/server.ts");
  const onLimit = async (caller: string, limit: string) => {
    const hour = Math.floor((await store.now()) / 3_600_000);
    await on.announceIn("audit", `api-limit-${caller}-${hour}`, overLimit(caller, limit));
  };
  const { routes: routesOf, paths, tools } = features.api;
  const routes = routesOf({ ...on, paths, tools, onLimit, gatewayNow: contextNow });
  for (const why of config.callerProblems) log.warn("api.source-shut", { why });
  const onAnswer = (code: number) =>
    tallies.countCall("api", code === 429 || code >= 500 ? String(code) : undefined);
  const api = createApi({ routes, store, telemetry, onLimit, onAnswer, log });
  // Alerts and proposals are taken while Slack is away, so this port answers for itself.
  const readiness = readinessRoute({ ready, log });
  const server = opened(
    await startWebServer({ variable: "API_PORT", port, host, log }, (request, response) => {
      if (!readiness(request, response)) api.listener(request, response);
    }),
  );
  // This is closed before the server, which waits for running calls.
  opened({ close: async () => api.stop() });
  return server.port;
}

const overLimit = (caller: string, limit: string): Message =>
  sentence(
    md`🚪 ${plain(caller, 80)} is at its limit of ${limit}; Gatehouse refuses the rest. Check what it runs.`,
  );
