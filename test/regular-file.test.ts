import { execFileSync } from "node:child_process";
import { mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ChangingFile } from "../src/config/changing-file.ts";
import { readRegular, readRegularSync } from "../src/regular-file.ts";
import { runPolicy } from "../src/cli/policy.ts";
import { handedToPrograms } from "../src/features/index.ts";

it("a file from outside is a regular one of bounded size, or is refused without waiting for anything", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-regular-"));
  const at = (name: string) => join(folder, name);
  const server = createServer().listen(at("socket"));
  await writeFile(at("file"), "whole");
  await symlink(at("file"), at("link"));
  await symlink("/dev/zero", at("zero"));
  await symlink("nowhere", at("dangling"));
  execFileSync("mkfifo", [at("pipe")]);
  await writeFile(at("large"), "");
  await truncate(at("large"), 1024 ** 3);
  const refused = {
    folder: "EISDIR",
    pipe: "NOT_A_FILE",
    zero: "NOT_A_FILE",
    socket: "ENXIO",
    large: "TOO_LARGE",
    dangling: "ENOENT",
  };
  for (const [name, code] of Object.entries(refused)) {
    const path = name === "folder" ? folder : at(name);
    expect(() => readRegularSync(path, 100)).toThrow(expect.objectContaining({ code }));
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await expect(readRegular(path, 100)).rejects.toMatchObject({ code });
    expect(() => new ChangingFile(path)).toThrow();
    let said = "";
    const write = (text: string) => void (said += text);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect(
      await runPolicy(["check", path], {
        ...handedToPrograms,
        file: path,
        write,
        slack: "it is not asked",
      }),
    ).not.toBe(0);
    expect(said).toContain("can't be read");
  }
  for (const name of ["file", "link"]) {
    expect(readRegularSync(at(name), 5).toString()).toBe("whole");
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect((await readRegular(at(name), 5)).toString()).toBe("whole");
    expect(() => readRegularSync(at(name), 4)).toThrow("is larger than 4 bytes");
  }
  // Its size is said to be 0
  expect(readRegularSync("/proc/self/stat", 10_000).length).toBeGreaterThan(50);
  server.close();
  await rm(folder, { recursive: true });
});
