import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "./child.ts";

type Patch = readonly [file: string, was: string, is: string];

/**
 * What a later version may do: its records have a higher number, a field and a state that this one doesn't know. It
 * rests for a moment before each send, and reads records of both numbers.
 */
const patches: readonly Patch[] = [
  ["record.ts", "export const recordVersion = 1;", "export const recordVersion = 2;"],
  ["stored.ts", "record.v !== recordVersion", "record.v > recordVersion"],
  ["submit.ts", "v: recordVersion,", 'v: recordVersion,\n    weight: { of: "newer" },'],
  [
    "states.ts",
    "  authorized: [",
    `  resting: ["authorized", "sending", "expired", "cancelled", "rejected", "done"],
  authorized: ["resting", `,
  ],
  [
    "perform.ts",
    'case "authorized":',
    `case "authorized":
        if (request.record.v === 2) {
          await by.store.move(request, { state: "resting", progress: request.progress, why: "rests" });
          return waitFor(100);
        }
        return await begin(request, by);
      case "resting":`,
  ],
  ["sweep.ts", 'case "authorized":', 'case "resting":\n    case "authorized":'],
];

export const newerState = "resting";

/** A copy of Gatehouse made into a newer version. `script`: its bot, as `addBot` wants it. */
export async function makeNewerVersion(): Promise<{ script: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-newer-"));
  await cp(path.join(root, "src"), path.join(folder, "src"), { recursive: true });
  await cp(path.join(root, "package.json"), path.join(folder, "package.json"));
  await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  await mkdir(path.join(folder, "test/faults"), { recursive: true });
  const bot = path.join(folder, "test/faults/bot.ts");
  await cp(path.join(root, "test/faults/bot.ts"), bot);
  for (const [name, was, is] of patches) {
    const file = path.join(folder, "src/requests", name);
    const text = await readFile(file, "utf8");
    if (!text.includes(was)) throw new Error(`${name} no longer says ${was}`);
    await writeFile(file, text.replace(was, is));
  }
  return {
    script: path.relative(root, bot),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
