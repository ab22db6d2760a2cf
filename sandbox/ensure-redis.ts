import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aptInstall, findProgram, mayUseApt } from "./find-program.ts";

const names = ["redis-server", "valkey-server"];
const ways =
  "install one so that `redis-server` or `valkey-server` is on the PATH (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis)";

/** The path of a Redis server program: from the PATH, else, as root on Debian or Ubuntu, installed with apt. */
export async function ensureRedis(): Promise<string> {
  const found = findProgram(names);
  if (found !== undefined) return found;
  if (!mayUseApt()) throw new Error(`No Redis server was found here: ${ways}`);
  const failure = await aptInstall("redis-server", 180_000);
  const installed = findProgram(names);
  if (installed === undefined) {
    throw new Error(
      `No Redis server was found, and apt couldn't install one (${failure ?? "it isn't on the PATH"}): ${ways}`,
    );
  }
  return installed;
}

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dir: string;
  /** Ends it in an orderly way; its folder goes too, if it was ours. */
  stop(): Promise<void>;
  /** SIGKILL, as in a crash. The folder stays: `startRedis({ dir, port })` brings the same data back. */
  kill(): Promise<void>;
}

/**
 * A Redis of its own on 127.0.0.1, with an append-only file and without eviction, ready when it answers PING. It ends
 * when this process ends, even by SIGKILL. `args` come last, so `["--appendonly", "no"]` overrides; `env` is added to our own.
 */
export async function startRedis(
  options: {
    dir?: string;
    port?: number;
    args?: readonly string[];
    env?: NodeJS.ProcessEnv;
    /** Instead of the one that is found. */
    program?: string;
  } = {},
): Promise<RedisServer> {
  const program = options.program ?? (await ensureRedis());
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "sandbox-redis-")));
  // a port found free may be taken before Redis binds it
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    try {
      return await start(program, dir, port, options);
    } catch (error) {
      if (options.port === undefined && attempt < 5) continue;
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }
}

async function start(
  program: string,
  dir: string,
  port: number,
  options: { dir?: string; args?: readonly string[]; env?: NodeJS.ProcessEnv },
): Promise<RedisServer> {
  const settings = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    dir,
    "--save",
    "",
    "--loglevel",
    "notice",
  ];
  const keeping = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "everysec",
    "--maxmemory-policy",
    "noeviction",
  ];
  // its own process group: Ctrl-C in a terminal is for us, and we stop Redis last
  const child = spawn(program, [...settings, ...keeping, ...(options.args ?? [])], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, ...options.env },
  });
  let output = "";
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
  const listen = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-4_000);
    // its own words: on this port another server might answer a PING
    if (output.includes("Ready to accept connections")) resolve();
  };
  child.stdout.on("data", listen);
  child.stderr.on("data", listen);
  child.once("close", reject);
  child.once("error", reject);
  ready.catch(() => {});
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const watchdog = startWatchdog(pid, options.dir === undefined ? dir : undefined);
  const gone = once(child, "exit").then(() => watchdog.kill("SIGKILL"));

  async function end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (!child.kill(signal)) return void (await gone);
    const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
    await gone;
    clearTimeout(late);
  }
  async function stop(): Promise<void> {
    await end("SIGTERM");
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
  }

  const late = setTimeout(reject, 15_000);
  try {
    await ready;
  } catch {
    await end("SIGKILL");
    throw new Error(`Redis didn't start on port ${port}: ${complaint(output)}`);
  } finally {
    clearTimeout(late);
  }
  for (const handle of [child, child.stdout, child.stderr]) unref(handle);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid,
    dir,
    stop,
    kill: () => end("SIGKILL"),
    [Symbol.asyncDispose]: stop,
  };
}

/** Returns the line of its output that says why Redis didn't start. */
function complaint(output: string): string {
  const lines = output.trim().split("\n");
  const line = lines.find((text) => /bind:|Bad directive|can't/i.test(text)) ?? lines.at(-1);
  return line?.replace(/^\d+:\w .{0,30}? [#*-] /, "") ?? "";
}

/**
 * Kills the server, and removes its folder if it was ours, when this process is gone: the pipe to the watchdog closes with us, whatever ended us.
 * The server's exit ends the watchdog first, so that it can't hit a later process with the same number.
 */
function startWatchdog(pid: number, ownDir: string | undefined): ChildProcess {
  const script = 'cat >/dev/null; kill -9 "$0" 2>/dev/null; [ -z "$1" ] || rm -rf "$1"';
  const watchdog = spawn("sh", ["-c", script, String(pid), ownDir ?? ""], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  watchdog.on("error", () => {});
  unref(watchdog);
  unref(watchdog.stdin);
  return watchdog;
}

/** A handle that doesn't keep this process alive. The streams of a child are sockets, which their type doesn't say. */
function unref(handle: unknown): void {
  if (
    typeof handle === "object" &&
    handle !== null &&
    "unref" in handle &&
    typeof handle.unref === "function"
  ) {
    handle.unref();
  }
}

const given = new Set<number>();

/**
 * A port that nobody listens on now, another one each time, below those that systems give to outgoing connections (32,768 and up on
 * Linux, RFC 6335's dynamic range elsewhere): until its owner binds it, no connection takes it by chance.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer().listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      continue; // taken
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
