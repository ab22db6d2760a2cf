import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const root = path.join(import.meta.dirname, "../..");

/** The commit that `.ci/release` noted last. */
export const lastRelease = readFileSync(path.join(root, ".ci/last-release"), "utf8").trim();

const git = (...words: string[]) =>
  execFileSync("git", words, { cwd: root, maxBuffer: 512 * 1024 * 1024, stdio: "pipe" });

/** Why the last release can't be had from this checkout, as a sentence; undefined where it can. */
export function lastReleaseProblem(): string | undefined {
  try {
    git("cat-file", "-e", `${lastRelease}^{commit}`);
    return undefined;
  } catch {
    return `Tests beside the last release are skipped: this checkout lacks its commit ${lastRelease.slice(0, 12)} (git fetch --unshallow).`;
  }
}

/** One of its files. */
export const lastReleaseFile = (name: string): string =>
  git("show", `${lastRelease}:${name}`).toString();

export interface Release extends Disposable {
  /** Where its `gatehouse.mjs` is. */
  folder: string;
}

/** That commit's files in a folder of their own, with this checkout's packages. */
export function unpackLastRelease(): Release {
  const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-last-release-"));
  execFileSync("tar", ["x", "-C", folder], { input: git("archive", lastRelease) });
  return withPackages(folder);
}

/** The files of this checkout that run, in a folder of their own, to be changed there. */
export function copyThisRelease(): Release {
  const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-next-release-"));
  for (const name of ["src", "gatehouse.mjs", "package.json"])
    execFileSync("cp", ["-r", path.join(root, name), folder]);
  return withPackages(folder);
}

function withPackages(folder: string): Release {
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
