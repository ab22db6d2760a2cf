import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { ConfigError } from "../../src/config/config.ts";
import { holdDirectory } from "../../src/start/hold-directory.ts";

async function folder() {
  const made = await mkdtemp(path.join(tmpdir(), "gatehouse-dir-"));
  return {
    path: path.join(made, "data"),
    [Symbol.asyncDispose]: () => rm(made, { recursive: true, force: true }),
  };
}

const refusalOf = async (dir: string) => {
  const outcome = await holdDirectory(dir).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(ConfigError);
  return outcome instanceof ConfigError ? outcome.problems : [];
};

it("a data directory is made, held until the process closes, and left as it was", async () => {
  await using dir = await folder();
  const held = await holdDirectory(dir.path);
  expect(await refusalOf(dir.path)).toEqual([
    `DATA_DIR: ${dir.path} is in use by another process of Gatehouse: give each process a directory of its own`,
  ]);
  await held.close();
  const next = await holdDirectory(dir.path);
  await next.close();
  expect(await readdir(dir.path)).toEqual([]);
});

it("one that can't be written, or is too long a path, is refused by its name", async () => {
  await using dir = await folder();
  await writeFile(dir.path, "a file");
  expect(await refusalOf(dir.path)).toEqual([
    expect.stringMatching(/^DATA_DIR: .* can't be written \((EEXIST|ENOTDIR)\)/),
  ]);
  expect(await refusalOf(`${dir.path}/below`)).toEqual([
    expect.stringMatching(/^DATA_DIR: .*below can't be written \(ENOTDIR\)/),
  ]);
  expect(await refusalOf(`${dir.path}-${"x".repeat(120)}`)).toEqual([
    expect.stringMatching(/too long a path/),
  ]);
});

it("of twenty processes that start at once at most one gets it", async () => {
  await using dir = await folder();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, () => holdDirectory(dir.path)),
  );
  const held = outcomes.filter((one) => one.status === "fulfilled");
  expect(held.length).toBeLessThanOrEqual(1);
  for (const { value } of held) await value.close();
  await (await holdDirectory(dir.path)).close();
});

it("a frozen process keeps it; after kill -9 it is free at once", async () => {
  await using dir = await folder();
  const script = `const { holdDirectory } = await import(process.argv[1]); await holdDirectory(process.argv[2]); console.log("held"); setInterval(() => {}, 1000);`;
  const module = path.resolve("src/start/hold-directory.ts");
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, module, dir.path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  try {
    await once(child.stdout, "data");
    child.kill("SIGSTOP");
    expect(await refusalOf(dir.path)).toHaveLength(1);
  } finally {
    child.kill("SIGKILL");
    await gone;
  }
  const held = await holdDirectory(dir.path);
  expect(await readdir(dir.path)).toHaveLength(1);
  await held.close();
});
