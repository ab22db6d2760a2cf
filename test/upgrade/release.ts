import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { root } from "../faults/stage/child.ts";

/** What `make-release.ts` packed. */
export const releaseFile = (name: string) => path.join(import.meta.dirname, `${name}.tar.gz`);

/** A released version in a folder of its own, with the packages of this one. `script`: its bot, as `addBot` wants it. */
export async function unpackRelease(name: string): Promise<{ script: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-release-"));
  await promisify(execFile)("tar", ["-xzf", releaseFile(name), "-C", folder]);
  for (const ours of ["node_modules", "sandbox"])
    await symlink(path.join(root, ours), path.join(folder, ours));
  return {
    script: path.relative(root, path.join(folder, "test/faults/stage/bot.ts")),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
