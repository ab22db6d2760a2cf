import { commands } from "../commands/index.ts";
import { ConfigError, loadConfig, type Role } from "../config/config.ts";
import { version } from "../config/version.ts";
import { messageOf, UserError } from "../errors.ts";
import { createLog, hideSecret, type Log } from "../log/log.ts";
import { operationsOf } from "../policy/approval-rule.ts";
import { isKnownSocketRejection } from "../slack/receive/socket-rejection.ts";
import { printable } from "../text/printable.ts";
import { exitConfig, orExit } from "./command-line.ts";
import { collectGarbage, type Signals } from "./node-process.ts";
import { type Running, start } from "./start.ts";
import { useProxies } from "./use-proxies.ts";

/** How long a process may take to end after SIGTERM. */
const stopWithinMs = 10_000;

/** Starts the process, stops it on a signal, and ends it when it can't continue. */
export async function runProcess(role: Role, signals: Signals): Promise<void> {
  const { stopping } = signals;
  const config = orExit(() => loadConfig({ role, operations: operationsOf(commands) }));
  for (const secret of config.secrets) hideSecret(secret);
  if (config.proxies) useProxies(config.proxies);
  const log = createLog({ level: config.logLevel, base: { role, pid: process.pid } });
  log.info("process.starting", { version, node: process.version });
  catchTheUncaught(log);
  let running: Running | undefined;
  let isReloadDue = false;
  signals.onOther((signal) => {
    if (signal !== "SIGHUP")
      return log.info("process.signal-ignored", { signal, why: "Gatehouse opens no debugger" });
    log.info("process.reloading", {});
    isReloadDue = running === undefined;
    void running?.reload();
  });
  onAbort(stopping, () => {
    log.info("process.stopping", { signal: String(stopping.reason) });
    setTimeout(() => ended("late", log), stopWithinMs - 500);
  });
  try {
    running = await start(config, log, {
      signal: stopping,
      onWedged: (why) => exitAfter(why, log),
    });
  } catch (error) {
    if (stopping.aborted) return ended("before it had started", log);
    log.error("process.cannot-start", { error });
    if (error instanceof ConfigError) exitConfig(error);
    const hint = error instanceof UserError && error.hint ? ` ${error.hint}.` : "";
    process.stderr.write(printable(`Gatehouse can't start: ${messageOf(error)}.${hint}\n`));
    process.exit(1);
  }
  const started = running;
  if (isReloadDue) void started.reload();
  collectGarbage();
  onAbort(stopping, () => void started.close().then(() => ended("closed", log)));
}

/** Also when it was aborted before. */
function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener("abort", act, { once: true });
}

function ended(how: string, log: Log): void {
  log.info("process.stopped", { how });
  process.exit(0);
}

/**
 * A rejection that Slack's socket client is known to leave behind is logged; anything else unforeseen ends the process,
 * because its state can't be trusted: the journal holds every request, and a fresh process goes on with them.
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
  log.error("process.ends", { why, ...(error === undefined ? {} : { error }) });
  process.exit(1);
}
