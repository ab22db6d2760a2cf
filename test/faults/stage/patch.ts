import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";

/** A change of one source file: what stands there exactly once, and what stands there instead. */
export interface Patch {
  file: string;
  was: string;
  is: string;
}

/** Why the patch fits no more; undefined when it does. */
export function patchProblem({ file, was }: Patch, text: string | undefined): string | undefined {
  if (text === undefined) return `there is no ${file}`;
  const times = text.split(was).length - 1;
  return times === 1 ? undefined : `${file} has ${times} times, not once: ${was}`;
}

/** Changes the file below `root`; throws where the patch fits no more. */
export async function applyPatch(root: string, patch: Patch): Promise<void> {
  const file = path.join(root, patch.file);
  const text = await readFile(file, "utf8").catch(() => undefined);
  const problem = patchProblem(patch, text);
  if (problem !== undefined || text === undefined) throw new Error(problem);
  await writeFile(
    file,
    text.replace(patch.was, () => patch.is),
  );
}
