import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { judgeDirectory, lookAtDirectory } from "../../src/operate/checks/folders.ts";
import { holdDirectory } from "../../src/operate/hold-directory.ts";
import { startWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

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

it.each(["/proc", "/proc/gatehouse", "/proc/self/a/b", "/sys", "/sys/kernel/gatehouse"])(
  "%s is refused as what it is, and isn't tried",
  async (place) => {
    const problem = `DATA_DIR: ${place} can't be written (it shows the kernel, and keeps no files)`;
    expect(await refusalOf(place)).toEqual([
      `${problem}: name a directory on a disk; in a container, give it a volume`,
    ]);
    expect(judgeDirectory(lookAtDirectory(place))).toMatchObject([
      { severity: "alarm", text: expect.stringMatching(/it shows the kernel, and keeps no files/) },
    ]);
  },
);

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

/** What is mounted there, in 64 KiB; undefined where nothing may be. */
function smallDisk(at: string): (AsyncDisposable & { remount(how: string): void }) | undefined {
  mkdirSync(at);
  const run = (program: string, ...words: string[]) => spawnSync(program, words).status;
  if (run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", at) !== 0) return undefined;
  return {
    remount: (how) => void run("mount", "-o", `remount,${how}`, at),
    [Symbol.asyncDispose]: async () => void run("umount", at),
  };
}

it("a full disk, and one that is mounted read-only, are told with their own way out, and nothing stays behind", async ({
  skip,
}) => {
  await using dir = await folder();
  await using disk = smallDisk(dir.path);
  if (!disk) throw skip("nothing can be mounted here");
  const filler = path.join(dir.path, "filler");
  writeFileSync(filler, Buffer.alloc(64 * 1024));
  const full =
    "Free space on its disk, or inodes (df -h, df -i), or name a directory on another one";
  expect(await refusalOf(dir.path)).toEqual([
    `DATA_DIR: ${dir.path} can't be written (ENOSPC): ${full[0]?.toLowerCase()}${full.slice(1)}`,
  ]);
  expect(judgeDirectory(lookAtDirectory(dir.path))).toMatchObject([
    {
      severity: "alarm",
      text: `DATA_DIR: ${dir.path} can't be written (ENOSPC)`,
      next: `${full}.`,
    },
  ]);
  expect(await readdir(dir.path)).toEqual(["filler"]);
  await rm(filler);
  disk.remount("ro");
  expect(await refusalOf(dir.path)).toEqual([
    `DATA_DIR: ${dir.path} can't be written (EROFS): mount its file system writable, or name another directory; in a container, give it a volume`,
  ]);
  disk.remount("rw");
  await (await holdDirectory(dir.path)).close();
});

it("what it keeps is for its own user alone, whatever the umask", async () => {
  await using dir = await folder();
  const before = process.umask(0o022);
  try {
    await using redis = await privateRedis();
    const env = { DATA_DIR: dir.path };
    const modes = async () => {
      const names = ["", ...(await readdir(dir.path, { recursive: true })).toSorted()];
      return names.map((name) => {
        const is = statSync(path.join(dir.path, name));
        return { name, mode: is.mode & 0o777, wanted: is.isDirectory() ? 0o700 : 0o600 };
      });
    };
    const runs = async (look: () => Promise<void>) => {
      await using world = await startWorld({ redisUrl: redis.url, namespace: "gatehouse", env });
      await world.olivia.types("ops", "/vm restart web-2");
      await world.ended("vm restart");
      // The next run of the schedule after the one that seals anchors it
      const anchors = path.join(dir.path, "audit-anchors.jsonl");
      await until(() => existsSync(anchors)).toBe(true);
      await look();
    };
    const areOpen = async () => (await modes()).filter(({ mode, wanted }) => mode !== wanted);
    await runs(async () => {
      const names = (await modes()).map(({ name }) =>
        name.replace(/[\da-f]{16}|(?<=sends)-[^.]*/, "…"),
      );
      expect(names).toEqual([
        "",
        "audit-anchors.jsonl",
        "audit-key.pem",
        "ledger",
        "ledger/sends….jsonl",
        "lock-….sock",
      ]);
      expect(await areOpen()).toEqual([]);
    });
  } finally {
    process.umask(before);
  }
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
  const module = path.resolve("src/operate/hold-directory.ts");
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
