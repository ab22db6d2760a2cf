import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { aptInstall, mayUseApt } from "../../sandbox/find-program.ts";
import { root } from "../structure/sources.ts";
import { composeServices } from "./compose.ts";
import { nextSuite, unpackPackages } from "./debian-packages.ts";
import { engineProblem } from "./shipped.ts";

const run = promisify(execFile);
const startLimitMs = 60_000;

/**
 * Makes sure that `docker` of this process and of those that it starts reaches an engine. Without one, as root on Debian, starts one
 * of its own from Debian's packages: in a folder, with no bridge and no rule of a firewall, so nothing of the machine changes.
 * Where no registry can be reached, images are made from Debian's packages, too. Rejects where that can't be done.
 */
export async function provideEngine(): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const problem = await engineProblem();
  if (problem !== undefined) {
    if (!mayUseApt()) throw new Error(problem);
    await startEngine(stack);
  }
  await provideImages();
  return stack.move();
}

async function startEngine(stack: AsyncDisposableStack): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-engine-"));
  const at = (...names: string[]) => path.join(folder, ...names);
  stack.defer(async () => {
    const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
    const own = mounts
      .map((line) => line.split(" ")[1] ?? "")
      .filter((mount) => mount.startsWith(folder));
    for (const mount of own.toReversed()) await run("umount", [mount]);
    await rm(folder, { recursive: true, force: true });
  });
  await unpackPackages(["docker.io", "containerd", "runc", "tini"], at("root"));
  // This release of Debian may still have Compose 1
  await unpackPackages(["docker-compose"], at("next"), { suite: nextSuite });
  await mkdir(at("config/cli-plugins"), { recursive: true });
  const plugin = "cli-plugins/docker-compose";
  await symlink(at("next/usr/libexec/docker", plugin), at("config", plugin));

  const programs = ["sbin", "bin"].map((name) => at("root/usr", name)).join(":");
  Object.assign(process.env, {
    PATH: `${programs}:${process.env["PATH"]}`,
    DOCKER_HOST: `unix://${at("docker.sock")}`,
    DOCKER_CONFIG: at("config"),
  });
  const places = Object.entries({
    "data-root": at("data"),
    "exec-root": at("run"),
    pidfile: at("dockerd.pid"),
    host: `unix://${at("docker.sock")}`,
    bridge: "none",
    iptables: "false",
  }).map(([name, value]) => `--${name}=${value}`);
  // In a process group of its own: Ctrl-C is for us, and the engine ends last
  const engine = spawn("dockerd", places, { stdio: ["ignore", "ignore", "pipe"], detached: true });
  const ended = once(engine, "exit");
  stack.defer(async () => {
    engine.kill();
    await ended;
  });
  let log = "";
  engine.stderr.on("data", (text: Buffer) => (log = (log + text.toString()).slice(-2_000)));
  const deadline = performance.now() + startLimitMs;
  while ((await engineProblem()) !== undefined) {
    if (performance.now() > deadline) throw new Error(`The Docker engine doesn't start: ${log}`);
    await sleep(500);
  }
}

/** The images that the project names, from a registry; else stand-ins with the same programs, of the version that Debian has. */
async function provideImages(): Promise<void> {
  const { redis } = await composeServices();
  const dockerfile = readFileSync(path.join(root, "Dockerfile"), "utf8");
  const node = /^FROM (\S+)/m.exec(dockerfile)?.[1] ?? "";
  const lacking: string[] = [];
  for (const image of [redis?.image ?? "", node]) {
    const isHere = () => succeeds("docker", ["image", "inspect", image]);
    if (!(await isHere()) && !(await succeeds("docker", ["pull", "--quiet", image])))
      lacking.push(image);
  }
  if (lacking.length === 0) return;
  if (!mayUseApt()) throw new Error(`${lacking.join(" and ")} can't be pulled here.`);
  process.stderr.write(`No registry has ${lacking.join(" and ")}: made from Debian's packages.\n`);
  const failure = await aptInstall("debootstrap", 300_000);
  if (failure !== undefined) throw new Error(`debootstrap can't be installed: ${failure}`);
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-images-"));
  try {
    await run("debootstrap", [
      "--variant=minbase",
      "--include=redis-server,ca-certificates",
      nextSuite,
      folder,
    ]);
    const inside = (script: string) => run("chroot", [folder, "sh", "-euc", script]);
    await inside("install -d -o redis -g redis /data && useradd --uid 1000 --create-home node");
    const local = path.join(folder, "usr/local");
    // The npm that runs this
    const npm = path.join(process.env["npm_execpath"] ?? "", "../..");
    await cp(npm, path.join(local, "lib/node_modules/npm"), { recursive: true });
    copyFileSync(process.execPath, path.join(local, "bin/node"));
    await inside("ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm");
    // Authorities that this machine trusts, as for a proxy in front of the registry of packages
    const authorities = "/etc/ssl/certs/ca-certificates.crt";
    copyFileSync(authorities, path.join(folder, authorities));
    const imported = lacking.map((image) => {
      const trust = `ENV npm_config_cafile=${authorities}`;
      return `docker import --change '${trust}' - '${image}'`;
    });
    for (const command of imported)
      await run("sh", ["-c", `tar --create --directory "$1" . | ${command}`, "sh", folder]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const succeeds = (program: string, words: readonly string[]) =>
  run(program, words).then(
    () => true,
    () => false,
  );
