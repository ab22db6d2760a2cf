import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "../../sandbox/ensure-redis.ts";
import type { World } from "../../demo/world.ts";
import { root } from "../structure/sources.ts";
import { composeServices } from "./compose.ts";

/** What a release ships for Docker, and what an operator copies from it. */
const files = [
  ".dockerignore",
  "Dockerfile",
  "compose.yaml",
  "package.json",
  "package-lock.json",
  "gatehouse.mjs",
  "src",
  "LICENSE",
  ".env.example",
  "gatehouse.example.yml",
];

export interface Ran {
  code: number;
  /** Both streams. */
  output: string;
}

/** Gatehouse in the containers of compose.yaml, between the sandboxes of a world. */
export interface Shipped extends AsyncDisposable {
  /** Where compose.yaml and .env are. */
  folder: string;
  /** The services that run Gatehouse, by the port of their probes. */
  ports: Readonly<Record<string, number>>;
  redisUrl: string;
  docker(words: readonly string[], input?: string): Promise<Ran>;
  /** `docker compose` with these words. Rejects unless it ends with `code`; resolves with what it printed. */
  compose(words: readonly string[], how?: { input?: string; code?: number }): Promise<string>;
  /** The health of each container, as Docker's checks see it. */
  health(): Promise<readonly string[]>;
}

/** When all are well. `up --wait` gives up at the first failed check, which a busy machine is late for. */
export const allHealthy = ["healthy", "healthy", "healthy", "healthy"];

/** Why containers can't be tried here, as a sentence; undefined where they can. */
export async function engineProblem(): Promise<string | undefined> {
  for (const words of [["info"], ["compose", "version"]]) {
    const { code } = await run("docker", words);
    if (code !== 0)
      return `The containers can't be tried: there is no Docker engine with Compose 2 (docker ${words.join(" ")}). As root on Debian, npm run check:docker starts one.`;
  }
  return undefined;
}

function run(
  program: string,
  words: readonly string[],
  { cwd = root, input = "", env = process.env }: Partial<RunOptions> = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const limits = { cwd, env, maxBuffer: 512 * 1024 * 1024 };
    const child = execFile(program, words, limits, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code) || 1, output: stdout + stderr }),
    );
    child.stdin?.end(input);
  });
}

interface RunOptions {
  cwd: string;
  input: string;
  env: NodeJS.ProcessEnv;
}

/**
 * A folder as README has it after its first lines about Docker, with `change` made to the example of a policy. compose.yaml is
 * what is shipped. Beside it stands an override with what the sandboxes need: they speak HTTP on this machine's own address, so the
 * containers share its network, each with ports of its own. `redisMb`: the memory of Redis, for more than the usual.
 */
export async function unpackShipped(
  world: World,
  change: (example: string) => string,
  { redisMb }: { redisMb?: number } = {},
): Promise<Shipped> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-shipped-"));
  for (const name of files)
    await cp(path.join(root, name), path.join(folder, name), { recursive: true });
  const edit = async (from: string, to: string, by: (text: string) => string) =>
    writeFile(path.join(folder, to), by(await readFile(path.join(folder, from), "utf8")));
  const password = randomBytes(24).toString("hex");
  const filled = { ...world.env, REDIS_PASSWORD: password } as Record<string, string>;
  const asked = ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_API_URL"];
  const others = ["COMPUTE_API_URL", "COMPUTE_API_KEY", "REDIS_PASSWORD"];
  await edit(".env.example", ".env", (text) =>
    [...asked, ...others].reduce(
      (lines, name) =>
        lines.replace(new RegExp(`^(# )?${name}=.*$`, "m"), `${name}=${filled[name] ?? ""}`),
      text,
    ),
  );
  await edit("gatehouse.example.yml", "gatehouse.yml", change);

  const { redis, ...ours } = await composeServices();
  const redisPort = String(await freePort());
  const redisUrl = `redis://gatehouse:${password}@127.0.0.1:${redisPort}`;
  const ports: Record<string, number> = {};
  const override: Record<string, object> = {
    redis: {
      network_mode: "host",
      command: redis?.command.map((script) =>
        script
          .replace("--dir", `--port ${redisPort} --dir`)
          .replace(/(?<=--maxmemory )\d+mb/, (usual) => (redisMb ? `${redisMb}mb` : usual)),
      ),
      healthcheck: {
        test: redis?.healthcheck?.test.map((script) =>
          script.replace("redis-cli", `redis-cli -p ${redisPort}`),
        ),
      },
      ...(redisMb && { mem_limit: `${2 * redisMb}m` }),
    },
  };
  for (const name of Object.keys(ours)) {
    ports[name] = await freePort();
    override[name] = {
      network_mode: "host",
      ...(name === "gateway" && { build: { context: ".", network: "host" } }),
      environment: { OPS_PORT: String(ports[name]), REDIS_URL: redisUrl },
    };
  }
  const written = JSON.stringify({ services: override }, undefined, 2);
  await writeFile(path.join(folder, "compose.override.yaml"), written);

  const name = `gatehouse-${randomBytes(4).toString("hex")}`;
  const env = { ...process.env, COMPOSE_PROJECT_NAME: name };
  const docker = (words: readonly string[], input = "") =>
    run("docker", words, { cwd: folder, env, input });
  const compose: Shipped["compose"] = async (words, { input = "", code = 0 } = {}) => {
    const ran = await docker(["compose", ...words], input);
    if (ran.code === code) return ran.output;
    const log = await docker(["compose", "logs", "--no-color", "--tail=20"]);
    const command = `docker compose ${words.join(" ")}`;
    throw new Error(`${command} ended with ${ran.code}: ${ran.output.slice(-3000)}\n${log.output}`);
  };
  return {
    folder,
    ports,
    redisUrl,
    docker,
    compose,
    async health() {
      const words = ["compose", "ps", "--format", "{{.Health}}"];
      return (await docker(words)).output.trim().split("\n");
    },
    async [Symbol.asyncDispose]() {
      await docker(["compose", "down", "--volumes", "--timeout", "0"]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
