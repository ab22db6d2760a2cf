import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isAbsolute, join } from "node:path";

const home = fileURLToPath(new URL("../..", import.meta.url));

/** Gatehouse's own version, from package.json: `1.0.0`, or `1.0.1-dev` between releases. */
export const { version }: { version: string } = JSON.parse(
  readFileSync(join(home, "package.json"), "utf8"),
);

const isCommit = (text = "") => /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(text);

/**
 * The commit that this Gatehouse was made from: the one that is checked out, or the one that
 * `npm pack` wrote down. Undefined when neither is known.
 */
export function commitOf(folder: string = home): string | undefined {
  const commit = checkedOut(join(folder, ".git")) ?? textOf(join(folder, "src/commit"));
  return isCommit(commit) ? commit : undefined;
}

/** Reads Git's own files, because a machine may lack Git or let it refuse another user's folder. */
function checkedOut(dotGit: string): string | undefined {
  // In a worktree, `.git` is a file that names the folder, which names the one with all branches.
  const [, named] = /^gitdir: (.+)$/.exec(textOf(dotGit) ?? "") ?? [];
  const git = named === undefined ? dotGit : from(join(dotGit, ".."), named);
  const head = textOf(join(git, "HEAD"));
  const [, branch] = /^ref: (.+)$/.exec(head ?? "") ?? [];
  if (branch === undefined) return head;
  const shared = from(git, textOf(join(git, "commondir")) ?? ".");
  const packed = textOf(join(shared, "packed-refs"))?.split("\n") ?? [];
  return (
    textOf(join(shared, branch)) ??
    packed.find((line) => line.endsWith(` ${branch}`))?.slice(0, -branch.length - 1)
  );
}

const from = (folder: string, path: string) => (isAbsolute(path) ? path : join(folder, path));

/** Undefined when the file can't be read. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** `1.0.0 (90533be45a89)`, or the version alone where the commit isn't known. */
export function versionInWords(commit = commitOf()): string {
  return commit === undefined ? version : `${version} (${commit.slice(0, 12)})`;
}
