import { addAbortListener } from "node:events";
import { trustAuthorities } from "../config/authorities.ts";
import { type Config, type Role, loadConfig } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import { commitOf, version } from "../config/version.ts";
import { messageOf, withHint } from "../errors.ts";
import type { Feature } from "../features/define-feature.ts";
import { type Log, createLog } from "../log/log.ts";
import { createOutput } from "../log/output.ts";
import { redisTrouble } from "../redis/redis.ts";
import { isKnownSocketRejection } from "../slack/web-answer.ts";
import { printable } from "../text/terminal.ts";
import { exitConfig, orExit } from "./exit-config.ts";
import { type Signals, collectGarbage } from "./node-process.ts";
import { useProxies } from "./use-proxies.ts";
import { start } from "./start.ts";

/** How long a process may take to end after SIGTERM (ms). */
const stopWithinMs = 10_000;

/** Starts the process, stops it on a signal, and ends it when it can't continue. */
export async function runProcess(
  role: Role,
  signals: Signals,
  { features, terms }: { features: readonly Feature[]; terms: PolicyTerms },
): Promise<void> {
  const { stopping } = signals;
  const config = orExit(() => loadConfig({ role, terms }));
  keepTrusting(config);
  if (config.proxies) useProxies(config.proxies);
  const output = createOutput(process.stdout);
  const base = { role, pid: process.pid };
  const log = createLog({ level: config.logLevel, base, write: output.write });
  log.info("process.starting", { version, commit: commitOf(), node: process.version });
  catchTheUncaught(log);
  addAbortListener(stopping, () => {
    log.info("process.stopping", { signal: String(stopping.reason) });
    setTimeout(() => ended("late", log), stopWithinMs - 500);
  });
  const onWedged = (why: string, error?: unknown) =>
    error instanceof ConfigError ? cannotStart(error, log) : exitAfter(why, log);
  const running = await start(config, log, {
    features,
    signal: stopping,
    onWedged,
    logLoss: output.loss,
  }).catch((error: unknown) =>
    stopping.aborted ? ended("before it had started", log) : cannotStart(error, log),
  );
  // Signals that came during the start are passed on now, because the policy file may have been
  // read before them.
  signals.onOther((signal) => {
    if (signal !== "SIGHUP")
      return log.info("process.signal-ignored", { signal, why: "Gatehouse opens no debugger" });
    log.info("process.reloading", {});
    void running.reload();
  });
  collectGarbage();
  addAbortListener(stopping, () => void running.close().then(() => ended("closed", log)));
}

const doctorSays = "`node gatehouse.mjs doctor` says what to do";

/**
 * How often the file of CA_FILE is reread (ms). Node.js has no hook that would do it for each
 * connection.
 */
const lookAtAuthoritiesMs = 10_000;

function keepTrusting(config: Config): void {
  trustAuthorities(config.authorities);
  if (config.authorities === undefined) return;
  setInterval(() => trustAuthorities(config.authorities), lookAtAuthoritiesMs).unref();
}

function cannotStart(error: unknown, log: Log): never {
  log.error("process.cannot-start", { error });
  if (error instanceof ConfigError) exitConfig(error);
  const trouble = redisTrouble(error);
  const why = trouble === undefined ? withHint(error, ". ") : `${trouble}. ${doctorSays}`;
  process.stderr.write(printable(`Gatehouse can't start: ${why}.\n`));
  return process.exit(1);
}

function ended(how: string, log: Log): never {
  log.info("process.stopped", { how });
  return process.exit(0);
}

/**
 * Logs a rejection that Slack's socket client is known to leave unhandled. Any other unexpected
 * error ends the process, because its state can't be trusted. The journal has every request, and a
 * new process continues with them.
 */
function catchTheUncaught(log: Log): void {
  process.on("unhandledRejection", (reason) => {
    if (isKnownSocketRejection(reason)) log.warn("process.socket-rejection", { error: reason });
    else exitAfter(`unhandled rejection: ${messageOf(reason)}`, log, reason);
  });
  process.on("uncaughtException", (error) =>
    exitAfter(`uncaught: ${messageOf(error)}`, log, error),
  );
}

function exitAfter(why: string, log: Log, error?: unknown): void {
  log.error("process.ends", { why, error });
  process.exit(1);
}
