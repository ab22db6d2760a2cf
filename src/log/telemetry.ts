import { collectDefaultMetrics, Registry } from "prom-client";
import { metricDefiners, type MetricName } from "./define-metrics.ts";
import {
  callMetrics,
  gatewayMetrics,
  processMetrics,
  requestMetrics,
  sharedMetrics,
} from "./metrics.ts";

/**
 * The metrics behind `/metrics`. Labels take few, fixed values: never an ID, a name, or a text from
 * outside. A metric that can have a sample from the start has one, so that an alert on its growth
 * sees the first event, too. The registry is created here instead of using the library's global
 * one, so that several worlds can live in one process.
 */
export type Telemetry = ReturnType<typeof createTelemetry>;

const ends = ["done", "failed", "rejected", "not-applied", "denied", "expired", "cancelled"];
/**
 * Why a process isn't ready. The reasons about a Redis that answers but takes no writes also appear
 * in `src/redis/redis.ts`.
 */
const unreadyReasons = [
  "starting",
  "stopping",
  "stuck",
  "slack",
  "redis",
  "redis-full",
  "redis-disk",
  "redis-read-only",
  "redis-replicas",
  "policy",
  "clock",
] as const;
export type UnreadyReason = (typeof unreadyReasons)[number];
const limits = ["slack-posts", "slack-edits", "compute", "target"] as const;
/** The kinds of deliveries as `src/slack/receive` names them. */
const deliveryKinds = "command event button submission closed options shortcut other".split(" ");
const refusalReasons =
  "method header timestamp signature content-type body too-large slow crowded app team replay".split(
    " ",
  );

/** `commands` are the names of the commands that make requests. */
export function createTelemetry({
  role = "all",
  version = "unknown",
  commands = [],
}: { role?: string; version?: string; commands?: readonly string[] } = {}) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const sharedRegistry = new Registry();
  let isSharedKnown = false;
  const catalog: MetricName[] = [];
  const here = metricDefiners(registry, catalog);
  const own = { ...requestMetrics(here), ...callMetrics(here), ...processMetrics(here) };
  // A worker receives nothing, so it doesn't export these metrics.
  const gateway = gatewayMetrics(role === "worker" ? metricDefiners(undefined, catalog) : here);
  const shared = sharedMetrics(metricDefiners(sharedRegistry, catalog));
  own.build.set({ version, node: process.version, role }, 1);
  setFirstSamples(own, gateway, commands);

  return {
    ...own,
    ...gateway,
    shared,
    /**
     * Tells whether the shared values were just read. Otherwise they are left out, because old
     * values would be taken for current ones.
     */
    knowShared(isKnown: boolean): void {
      isSharedKnown = isKnown;
    },
    /** Returns the metrics as Prometheus text, with its content type. */
    async render(): Promise<{ type: string; text: string }> {
      const texts = [await registry.metrics(), isSharedKnown ? await sharedRegistry.metrics() : ""];
      return { type: registry.contentType, text: texts.join("\n").trimEnd() + "\n" };
    },
    /** Records whether Redis takes writes, as a write just showed. */
    sawRedisWrite: (isUp: boolean) => own.redisUp.set(isUp ? 1 : 0),
    setLogLost(lines: number): void {
      own.logLinesLost.reset();
      own.logLinesLost.inc(lines);
    },
    setUnready(unready: readonly UnreadyReason[]): void {
      for (const reason of unreadyReasons)
        own.ready.set({ reason }, unready.includes(reason) ? 0 : 1);
    },
    /** The name and labels of every metric that Gatehouse defines. */
    catalog,
  };
}

type ProcessMetrics = ReturnType<typeof requestMetrics> &
  ReturnType<typeof callMetrics> &
  ReturnType<typeof processMetrics>;

/** Gives metrics whose labels are known from the start a sample of 0. */
function setFirstSamples(
  own: ProcessMetrics,
  gateway: ReturnType<typeof gatewayMetrics>,
  commands: readonly string[],
): void {
  for (const command of commands) {
    for (const end of ends) own.requests.inc({ command, end }, 0);
    own.sentSeconds.zero({ command });
    own.settledSeconds.zero({ command });
  }
  for (const outcome of ["changed", "kept"]) own.policyReloads.inc({ outcome }, 0);
  for (const limit of limits) own.limitWaits.zero({ limit });
  for (const command of deliveryKinds) gateway.acked.zero({ command });
  for (const reason of refusalReasons) gateway.refusals.inc({ reason }, 0);
  // The API adds the samples of its own routes.
  gateway.apiCalls.inc({ route: "none", outcome: "404" }, 0);
}

export type LimitName = (typeof limits)[number];
