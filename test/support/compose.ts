import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parse } from "yaml";
import { ensureRedis } from "../../sandbox/ensure-redis.ts";
import { type PrivateRedis, privateRedis } from "./with-redis.ts";

interface Service {
  image: string;
  command: string[];
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
}

/** Values as compose puts them in: `$$`, `${NAME:-}`, and `${NAME:?why}`, where it stops without one. */
export function filledIn(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\{(\w+):([-?])([^}]*)\}/g, (_, name, kind, rest: string) => {
    if (name === undefined) return "$";
    const value = values[name as string];
    if (kind === "?" && !value) throw new Error(rest);
    return value ?? (kind === "-" ? rest : "");
  });
}

/** The services of compose.yaml, as YAML reads it. */
export async function composeServices(): Promise<Record<string, Service>> {
  const text = await readFile(new URL("../../compose.yaml", import.meta.url), "utf8");
  return (parse(text, { merge: true }) as { services: Record<string, Service> }).services;
}

const password = "not-a-real-password";

/**
 * The Redis of compose.yaml: its own script runs, with its paths in a folder of ours, and a free port. `change`: of the script,
 * to see what it is worth.
 */
export async function composeRedis(
  change: (script: string) => string = (script) => script,
): Promise<PrivateRedis & { password: string; healthcheck: string }> {
  const { redis } = await composeServices();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-compose-"));
  const program = path.join(folder, "redis");
  const places = [
    ["/tmp/users.acl", path.join(folder, "users.acl")],
    // Its arguments begin with --port, --bind and --dir
    ["--dir /data", '--port "$2" --bind "$4" --dir "$6"'],
    ["-u REDIS_PASSWORD redis-server", `-u REDIS_PASSWORD ${await ensureRedis()}`],
  ] as const;
  const write = (text: string) => filledIn(text, {});
  let script = write(change(redis?.command.join("\n") ?? ""));
  for (const [theirs, ours] of places) {
    if (!script.includes(theirs)) throw new Error(`compose.yaml has no ${theirs}`);
    script = script.replaceAll(theirs, () => ours);
  }
  await writeFile(program, `#!/bin/sh\nexport REDIS_PASSWORD=${password}\n${script}`);
  await chmod(program, 0o755);
  const server = await privateRedis([], { program });
  return {
    ...server,
    url: server.url.replace("//", `//gatehouse:${password}@`),
    password,
    healthcheck: `REDIS_PASSWORD=${password}; ${write(redis?.healthcheck?.test[1] ?? "").replace(
      "redis-cli",
      `redis-cli -p ${server.port}`,
    )}`,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
