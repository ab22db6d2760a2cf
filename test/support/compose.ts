import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parse } from "yaml";
import { ensureRedis } from "../../sandbox/ensure-redis.ts";
import { type PrivateRedis, privateRedis } from "./with-redis.ts";

interface Service {
  command: string[];
  environment?: Record<string, string>;
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
): Promise<PrivateRedis> {
  const { redis } = await composeServices();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-compose-"));
  const program = path.join(folder, "redis");
  const secret = path.join(folder, "password");
  const places = [
    ["$$", "$"],
    ["/run/secrets/redis-password", secret],
    ["/tmp/users.acl", path.join(folder, "users.acl")],
    // Its arguments begin with --port, --bind and --dir
    ["--dir /data", '--port "$2" --bind "$4" --dir "$6"'],
    ["exec redis-server", `exec ${await ensureRedis()}`],
  ] as const;
  let script = change(redis?.command.join("\n") ?? "");
  for (const [theirs, ours] of places) {
    if (!script.includes(theirs)) throw new Error(`compose.yaml has no ${theirs}`);
    script = script.replaceAll(theirs, () => ours);
  }
  await writeFile(secret, password);
  await writeFile(program, `#!/bin/sh\n${script}`);
  await chmod(program, 0o755);
  const server = await privateRedis([], { program });
  return {
    ...server,
    url: server.url.replace("//", `//gatehouse:${password}@`),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
