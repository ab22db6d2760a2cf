import { commands } from "./commands/index.ts";
import type { Config } from "./config.ts";
import { type Connected, connect } from "./connect.ts";
import { startHealth } from "./health.ts";
import type { Log } from "./log.ts";
import { type Gateway, startGateway } from "./slack/gateway.ts";
import type { PaceLimits } from "./slack/pace.ts";
import { startOutages } from "./start-outages.ts";
import { startTrail } from "./start-trail.ts";
import { startWorker } from "./start-worker.ts";
import { createStatus } from "./status.ts";

/** A started process. Closing it takes no new work, ends or hands back what runs, and releases everything. */
export interface Running {
  readonly port: number;
  close(): Promise<void>;
}

export interface StartOptions {
  /** The process can't go on and should be started anew. */
  onWedged?: (why: string) => void;
  /** Reached at named points of the protocol; tests of crashes end the process there. */
  at?: (point: string, what: string) => Promise<void>;
  /** Keeps several worlds apart on one Redis. */
  namespace?: string;
  /** Interface of the process's own web server; all by default. */
  host?: string;
  /** Slack's limits, where they are others than Slack's own. */
  slackPace?: PaceLimits;
}

/** Connects everything to the left with everything to the right, for one role, and stops it in reverse. */
export async function start(
  config: Config,
  log: Log,
  options: StartOptions = {},
): Promise<Running> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const stop of closers.splice(0).toReversed()) {
      await stop().catch((error: unknown) => log.warn("stop.failed", { error }));
    }
  };
  const opened: Connected["opened"] = (thing, stop) => {
    closers.push(() => stop(thing));
    return thing;
  };
  try {
    const at = options.at ?? (async () => undefined);
    const on = await connect(config, log, {
      at,
      opened,
      namespace: options.namespace,
      slackPace: options.slackPace,
    });
    const outages = startOutages(on);
    const status = createStatus({ ...on, outages });
    let wedged: string | undefined;
    if (config.role !== "gateway") {
      await startWorker(on, (why) => {
        wedged = why;
        options.onWedged?.(why);
      });
    }
    if (config.role !== "worker") startTrail(on);
    let gateway: Gateway | undefined;
    if (config.role !== "worker" && config.slack.receive) {
      const { receive } = config.slack;
      gateway = opened(
        await startGateway({ ...on, receive, commands, status: status.lines }),
        (it) => it.close(),
      );
    }
    const health = opened(
      await startHealth({
        port: config.port,
        ...(options.host ? { host: options.host } : {}),
        log,
        telemetry: {
          ...on.telemetry,
          async render() {
            await status.measure(on.telemetry);
            return on.telemetry.render();
          },
        },
        alive: () => wedged,
        ready: async () => gateway?.problem() ?? (await status.problem()),
        ...(gateway ? { routes: gateway.route } : {}),
      }),
      (it) => it.close(),
    );
    const { policyVersion } = config;
    log.info("process.started", { port: health.port, policyVersion, redis: on.redisCheck.kind });
    return { port: health.port, close };
  } catch (error) {
    await close();
    throw error;
  }
}
