import { spawn, type ChildProcess } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { connect, createServer, type AddressInfo } from "node:net"
import { once } from "node:events"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { UserError } from "../errors.ts"
import { aptInstall, findProgram, mayUseApt } from "./find-program.ts"

const names = ["redis-server", "valkey-server"]
const ways =
  "install one so that `redis-server` or `valkey-server` is on the PATH (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis)"

/** The path of a Redis server program: from the PATH, else, as root on Debian or Ubuntu, installed with apt. */
export async function ensureRedis(): Promise<string> {
  const found = findProgram(names)
  if (found !== undefined) return found
  if (!mayUseApt()) throw new UserError("No Redis server was found here", ways)
  const failure = await aptInstall("redis-server", 180_000)
  const installed = findProgram(names)
  if (installed === undefined) {
    throw new UserError(`No Redis server was found, and apt couldn't install one: ${failure ?? "it isn't on the PATH"}`, ways)
  }
  return installed
}

export interface RedisServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly dir: string
  /** Ends it in an orderly way; its folder goes too, if it was ours. */
  stop(): Promise<void>
  /** SIGKILL, as in a crash. The folder stays: `startRedis({ dir, port })` brings the same data back. */
  kill(): Promise<void>
}

/**
 * A Redis of its own on 127.0.0.1, with an append-only file and without eviction, ready when it answers PING. It ends
 * when this process ends, even by SIGKILL. `args` come last, so `["--appendonly", "no"]` overrides.
 */
export async function startRedis(
  options: { dir?: string; port?: number; args?: readonly string[] } = {},
): Promise<RedisServer> {
  const program = await ensureRedis()
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "gatehouse-redis-")))
  // a port found free may be taken before Redis binds it
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    try {
      return await start(program, dir, port, options)
    } catch (error) {
      if (options.port !== undefined || attempt === 5) throw error
    }
  }
}

async function start(
  program: string,
  dir: string,
  port: number,
  options: { dir?: string; args?: readonly string[] },
): Promise<RedisServer> {
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--loglevel", "warning"]
  const keeping = ["--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"]
  // its own process group: Ctrl-C in a terminal is for us, and we stop Redis last
  const child = spawn(program, [...settings, ...keeping, ...(options.args ?? [])], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  })
  let output = ""
  const listen = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-2_000))
  child.stdout.on("data", listen)
  child.stderr.on("data", listen)
  await once(child, "spawn")
  const pid = child.pid ?? 0
  const watchdog = startWatchdog(pid)
  const gone = once(child, "exit").then(() => watchdog.kill("SIGKILL"))
  for (const handle of [child, child.stdout, child.stderr]) unref(handle)

  async function end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (!child.kill(signal)) return void (await gone)
    const late = setTimeout(() => child.kill("SIGKILL"), 5_000)
    await gone
    clearTimeout(late)
  }
  async function stop(): Promise<void> {
    await end("SIGTERM")
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true })
  }

  try {
    await answers(port, child)
  } catch {
    await end("SIGKILL")
    throw new UserError(`Redis didn't start on port ${port}: ${output.trim().split("\n").at(-1) ?? ""}`)
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid,
    dir,
    stop,
    kill: () => end("SIGKILL"),
    [Symbol.asyncDispose]: stop,
  }
}

/**
 * Kills the server when this process is gone: the pipe to the watchdog closes with us, whatever ended us.
 * The server's exit ends the watchdog first, so that it can't hit a later process with the same number.
 */
function startWatchdog(pid: number): ChildProcess {
  const watchdog = spawn("sh", ["-c", 'cat >/dev/null; kill -9 "$0" 2>/dev/null', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  })
  watchdog.on("error", () => {})
  unref(watchdog)
  unref(watchdog.stdin)
  return watchdog
}

/** A handle that doesn't keep this process alive. The streams of a child are sockets, which their type doesn't say. */
function unref(handle: unknown): void {
  if (typeof handle === "object" && handle !== null && "unref" in handle && typeof handle.unref === "function") {
    handle.unref()
  }
}

async function answers(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + 15_000
  while (child.exitCode === null && child.signalCode === null && performance.now() < deadline) {
    // one that wants a password first is up as well
    if (/^(\+PONG|-NOAUTH)/.test(await ping(port))) return
    await pause(10)
  }
  throw new Error("no answer")
}

function ping(port: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect({ port, host: "127.0.0.1" }, () => socket.write("PING\r\n"))
  socket.setTimeout(1_000, () => socket.destroy())
  socket.on("data", (data) => {
    resolve(data.toString())
    socket.destroy()
  })
  socket.on("error", () => {})
  socket.on("close", () => resolve(""))
  return promise
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}
