import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "../../stage/child.ts";
import { applyPatch, type Patch } from "../../stage/patch.ts";

/** What a version with another stored format says of itself. */
export const anotherFormat: readonly Patch[] = [
  {
    file: "src/operate/stored-format.ts",
    was: 'export const storedFormat = "6";',
    is: 'export const storedFormat = "7";',
  },
];

/** A copy of Gatehouse that stores another format. `script`: its bot, as `addBot` wants it. */
export async function makeAnotherFormat(): Promise<{ script: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-format-"));
  // The sandbox vendors as well, whose roots the bot is given
  for (const part of ["src", "sandbox", "package.json"])
    await cp(path.join(root, part), path.join(folder, part), { recursive: true });
  await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  const script = path.join(folder, "test/faults/stage/bot.ts");
  await mkdir(path.dirname(script), { recursive: true });
  await cp(path.join(root, "test/faults/stage/bot.ts"), script);
  for (const patch of anotherFormat) await applyPatch(folder, patch);
  return {
    script: path.relative(root, script),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
