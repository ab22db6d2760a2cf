import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "../../stage/child.ts";
import { applyPatch, type Patch } from "../../stage/patch.ts";

const requests = "src/requests";

/**
 * What a later version may do: its records have a higher number, a field and a state that this one doesn't know. It
 * rests for a moment before each send, and reads records of both numbers.
 */
export const newerVersion: readonly Patch[] = [
  {
    file: `${requests}/journal/record.ts`,
    was: "export const recordVersion = 1;",
    is: "export const recordVersion = 2;",
  },
  {
    file: `${requests}/journal/parse-stored.ts`,
    was: "record.v !== recordVersion",
    is: "record.v > recordVersion",
  },
  {
    file: `${requests}/submit/submit.ts`,
    was: "v: recordVersion,",
    is: 'v: recordVersion,\n    weight: { of: "newer" },',
  },
  {
    file: `${requests}/journal/record.ts`,
    was: "  authorized: [",
    is: `  resting: ["authorized", "sending", "expired", "cancelled", "rejected", "done"],
  authorized: ["resting", `,
  },
  {
    file: `${requests}/perform/perform.ts`,
    was: 'case "authorized":',
    is: `case "authorized":
        if (request.record.v === 2) {
          await by.store.move(request, { state: "resting", progress: request.progress, why: "rests" });
          return waitFor(100);
        }
        return await begin(request, by);
      case "resting":`,
  },
  {
    file: `${requests}/perform/sweep.ts`,
    was: 'case "authorized":',
    is: 'case "resting":\n    case "authorized":',
  },
];

export const newerState = "resting";

/** A copy of Gatehouse made into a newer version. `script`: its bot, as `addBot` wants it. */
export async function makeNewerVersion(): Promise<{ script: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-newer-"));
  // The sandbox vendors as well, whose roots the bot is given
  for (const part of ["src", "sandbox", "package.json"])
    await cp(path.join(root, part), path.join(folder, part), { recursive: true });
  await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  const script = path.join(folder, "test/faults/stage/bot.ts");
  await mkdir(path.dirname(script), { recursive: true });
  await cp(path.join(root, "test/faults/stage/bot.ts"), script);
  for (const patch of newerVersion) await applyPatch(folder, patch);
  return {
    script: path.relative(root, script),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
