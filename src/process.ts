import { setTimeout as sleep } from "node:timers/promises";
import { runAudit } from "./audit/cli.ts";
import { ConfigError, configExitCode, loadAuditConfig, loadConfig, type Role } from "./config.ts";
import { messageOf, UserError } from "./errors.ts";
import { createLog, hideSecret, type Log } from "./log.ts";
import { isKnownSocketRejection } from "./slack/socket.ts";
import { type Running, start } from "./start.ts";

const usage = `usage: node src/main.ts [gateway|worker]
       node src/main.ts audit verify|export|head|erase
  without a word: gateway and worker in one process`;

/** How long a process may take to end after SIGTERM. */
const stopWithinMs = 10_000;

/** One process from its command line to its end: starts it, stops it on a signal, ends it when it can't go on. */
export async function runProcess(words: readonly string[]): Promise<void> {
  if (words[0] === "audit") {
    const { redisUrl, dataDir } = orExit(() => loadAuditConfig());
    // Set, not called: an export that goes through a pipe must not be cut
    process.exitCode = await runAudit(words.slice(1), {
      redisUrl,
      dataDir,
      write: (text) => void process.stdout.write(text),
    });
    return;
  }
  const [word = "all"] = words;
  if (words.length > 1 || !["all", "gateway", "worker"].includes(word)) {
    process.stderr.write(`${usage}\n`);
    process.exit(64);
  }
  const config = orExit(() => loadConfig({ role: word as Role }));
  for (const secret of config.secrets) hideSecret(secret);
  const log = createLog({ level: config.logLevel, base: { role: config.role, pid: process.pid } });
  catchTheUncaught(log);
  const stopping = new AbortController();
  let running: Running | undefined;
  const onSignal = (signal: string) => {
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort();
    log.info("process.stopping", { signal });
    void stop(running, log);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  try {
    running = await start(config, log, { onWedged: (why) => exitAfter(1, why, log) });
  } catch (error) {
    const hint = error instanceof UserError && error.hint ? ` ${error.hint}.` : "";
    log.error("process.cannot-start", { error });
    process.stderr.write(`Gatehouse can't start: ${messageOf(error)}.${hint}\n`);
    process.exit(1);
  }
  if (stopping.signal.aborted) await stop(running, log);
}

function orExit<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(configExitCode);
  }
}

async function stop(running: Running | undefined, log: Log): Promise<void> {
  if (!running) return;
  const late = sleep(stopWithinMs - 500, "late", { ref: false });
  const ended = running.close().then(
    () => "closed",
    (error: unknown) => {
      log.error("process.stop-failed", { error });
      return "failed";
    },
  );
  const how = await Promise.race([ended, late]);
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
    else exitAfter(1, `unhandled rejection: ${messageOf(reason)}`, log, reason);
  });
  process.on("uncaughtException", (error) =>
    exitAfter(1, `uncaught: ${messageOf(error)}`, log, error),
  );
}

function exitAfter(code: number, why: string, log: Log, error?: unknown): void {
  log.error("process.ends", { why, ...(error === undefined ? {} : { error }) });
  process.exit(code);
}
