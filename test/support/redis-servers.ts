import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { findProgram, mayUseApt } from "../../sandbox/find-program.ts";
import { nextSuite, unpackPackages } from "./debian-packages.ts";

/** Programs of Redis and Valkey. They go when they are disposed of. */
export interface RedisServers extends AsyncDisposable {
  /** The first whose `--version` fits. */
  find(version: RegExp): string | undefined;
}

/** What their programs load. */
const libraries =
  "libatomic1 libc6 libcap2 libgcc-s1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libsystemd0 libzstd1 zlib1g".split(
    " ",
  );

/** Those on the PATH, those that SERVER_PROGRAMS names with colons between, and, as root on Debian, those of its next release. */
export async function findRedisServers(): Promise<RedisServers> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-servers-"));
  const named = (process.env["SERVER_PROGRAMS"] ?? "").split(":").filter((name) => name !== "");
  const here = ["redis-server", "valkey-server"].map((name) => findProgram([name]));
  const next = mayUseApt() ? await unpackNext(folder) : [];
  const versions = [...named, ...here, ...next]
    .filter((program) => program !== undefined)
    .map((program) => ({ program, version: String(execFileSync(program, ["--version"])) }));
  return {
    find: (wanted) => versions.find(({ version }) => wanted.test(version))?.program,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Each with the libraries of its own release, by a script of its own. */
async function unpackNext(folder: string): Promise<string[]> {
  const packages = ["redis-tools", "redis-server", "valkey-tools", "valkey-server", ...libraries];
  try {
    await unpackPackages(packages, folder, { suite: nextSuite });
  } catch {
    return []; // without a mirror there are only those of this machine
  }
  const platform = process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
  const usr = path.join(folder, "usr");
  return Promise.all(
    ["redis-server", "valkey-server"].map(async (name) => {
      const program = path.join(folder, name);
      const loader = `${usr}/lib/${platform}/ld-linux-*.so.*`;
      const own = `--library-path ${usr}/lib/${platform} ${usr}/bin/${name}`;
      await writeFile(program, `#!/bin/sh\nexec ${loader} ${own} "$@"\n`);
      await chmod(program, 0o755);
      return program;
    }),
  );
}
