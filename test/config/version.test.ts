import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { commitOf, version, versionInWords } from "../../src/config/version.ts";
import { root } from "../structure/sources.ts";

const [first, second] = ["1".repeat(40), "2".repeat(40)];

/** A folder with these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-version-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

describe("the commit that is named beside the version", () => {
  it.each<[place: string, files: Record<string, string>, commit: string | undefined]>([
    [
      "a branch",
      { ".git/HEAD": "ref: refs/heads/a/b\n", ".git/refs/heads/a/b": `${first}\n` },
      first,
    ],
    ["no branch", { ".git/HEAD": `${first}\n` }, first],
    [
      "a branch among packed ones",
      {
        ".git/HEAD": "ref: refs/heads/b\n",
        ".git/packed-refs": `# pack-refs with: peeled\n${second} refs/heads/a/refs/heads/b\n${first} refs/heads/b\n`,
      },
      first,
    ],
    [
      "a worktree",
      {
        ".git": "gitdir: real/worktrees/one\n",
        "real/worktrees/one/HEAD": "ref: refs/heads/b\n",
        "real/worktrees/one/commondir": "../..\n",
        "real/refs/heads/b": `${first}\n`,
      },
      first,
    ],
    ["a packed release", { "src/commit": `${first}\n` }, first],
    ["a checkout of what was packed", { "src/commit": second, ".git/HEAD": first }, first],
    ["nothing", {}, undefined],
    ["a repository without a commit", { ".git/HEAD": "ref: refs/heads/b\n" }, undefined],
    ["a file that means nothing", { "src/commit": "fatal: not a git repository" }, undefined],
  ])("is known in %s", (_place, files, commit) => {
    expect(commitOf(folderWith(files))).toBe(commit);
  });

  it("is twelve digits behind the version", () => {
    expect(versionInWords(first)).toBe(`${version} (111111111111)`);
  });

  it("is written down by npm pack, in a clone alone", () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    );
    const pack = (name: string, cwd: string) =>
      execFileSync("sh", ["-c", scripts[name] ?? "false"], { cwd });
    const clone = folderWith({ "src/main.ts": "" });
    const git = (...words: string[]) =>
      execFileSync("git", ["-c", "user.name=x", "-c", "user.email=x@example.com", ...words], {
        cwd: clone,
      });
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "x");
    pack("prepack", clone);
    expect(readFileSync(join(clone, "src/commit"), "utf8").trim()).toBe(commitOf(clone));
    pack("postpack", clone);
    expect(() => readFileSync(join(clone, "src/commit"))).toThrow("ENOENT");
    const unpacked = folderWith({ "src/commit": first });
    for (const name of ["prepack", "postpack"]) pack(name, unpacked);
    expect(commitOf(unpacked)).toBe(first);
  });
});
