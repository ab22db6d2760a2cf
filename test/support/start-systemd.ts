import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream";
import { promisify } from "node:util";
import { programOf } from "./programs.ts";
import { until } from "./until.ts";

/** systemd as process 1 beside this machine's own: it sees this machine's programs, and changes none of its files. */
export interface Systemd extends AsyncDisposable {
  /** What it sees as `/mnt`. */
  folder: string;
  /** Runs a script in a shell of root's, and resolves with how that ended. */
  shell(script: string): Promise<{ code: number; stdout: string; stderr: string }>;
  /** Leads a port of its loopback to the same port of this machine's. */
  lead(port: number): Promise<void>;
}

/** Why it can't run here; undefined where it can. */
export function systemdProblem(): string | undefined {
  if (process.getuid?.() !== 0) return "systemd as process 1 needs root";
  if (programOf("systemd") === undefined || programOf("dbus") === undefined)
    return "there is no systemd with D-Bus here";
  const { status } = spawnSync("unshare", [
    "--mount",
    "--pid",
    "--cgroup",
    "--net",
    "--fork",
    "true",
  ]);
  return status === 0 ? undefined : "no namespaces can be made here";
}

export async function startSystemd(): Promise<Systemd> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-systemd-"));
  await chmod(folder, 0o755);
  const script = path.join(import.meta.dirname, "boot-systemd.sh");
  const child = spawn("unshare", ["--mount", script, folder, process.execPath], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => void (output += chunk.toString()));
  /** The child of a process; undefined while there is none. */
  const childOf = async (pid: number | undefined) => {
    const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text === "" ? undefined : Number.parseInt(text, 10);
  };
  const firstProcess = async () => {
    if (child.exitCode !== null) throw new Error(`systemd didn't start: ${output}`);
    // unshare runs the script, which runs the unshare whose child is process 1
    const pid = await childOf(await childOf(child.pid));
    const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
    return name.trim() === "systemd" ? pid : undefined;
  };
  const close = async () => {
    const pid = await firstProcess().catch(() => undefined);
    // With process 1, all of its namespace end
    if (pid !== undefined) process.kill(pid, "SIGKILL");
    else child.kill("SIGKILL");
    await ended;
    for (const server of servers) server.close();
    await rm(folder, { recursive: true, force: true });
  };
  const servers: ReturnType<typeof createServer>[] = [];
  try {
    const pid = await until(firstProcess, () => output);
    const run = promisify(execFile);
    const shell: Systemd["shell"] = (text) =>
      run("nsenter", ["--target", String(pid), "--all", "--root", "--wd", "sh", "-c", text], {
        maxBuffer: 64 * 1024 * 1024,
        env: {
          PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          HOME: "/root",
        },
      }).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        (error: Error & { code?: number; stdout?: string; stderr?: string }) => ({
          code: error.code ?? -1,
          stdout: error.stdout ?? "",
          stderr: error.stderr ?? error.message,
        }),
      );
    await until(async () => (await shell("systemctl is-system-running")).stdout.trim()).toMatch(
      /^(running|degraded)$/,
    );
    await mkdir(path.join(folder, "ports"));
    return {
      folder,
      shell,
      async lead(port) {
        // A socket in the file system is there for both networks
        const server = createServer((socket) => {
          const there = connect(port, "127.0.0.1");
          pipeline(socket, there, socket, () => undefined);
        });
        servers.push(server);
        server.listen(path.join(folder, "ports", String(port)));
        await once(server, "listening");
        const { code, stderr } = await shell(
          `systemd-run --quiet --socket-property=ListenStream=127.0.0.1:${port} ${proxy} /mnt/ports/${port}`,
        );
        if (code !== 0) throw new Error(stderr);
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const proxy = ["/usr/lib/systemd/systemd-socket-proxyd", "/lib/systemd/systemd-socket-proxyd"].find(
  (file) => existsSync(file),
);
