// node test/verifier/mutants.ts: takes one check of the verifier away at a time, in a copy, and shows that its case notices.
//   "the case"   those alone whose case has these words
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { applyPatch } from "../faults/stage/patch.ts";
import { checkCases } from "./check-cases.ts";
import { complaintsOf, createMints, type Verifier } from "./judging.ts";
import { type Mutation, mutations } from "./mutations.ts";
import { requiredCases } from "./required-cases.ts";

const root = join(import.meta.dirname, "../..");
const mints = createMints();
const cases = [...requiredCases(mints), ...checkCases(mints)];
const wanted = mutations.filter(({ noticedBy }) => noticedBy.includes(process.argv[2] ?? ""));

let unnoticed = 0;
for (const mutation of wanted) {
  // oxlint-disable-next-line no-await-in-loop -- told in their order
  const noticed = await isNoticed(mutation);
  if (noticed) continue;
  unnoticed += 1;
  process.stdout.write(`NOT NOTICED by ${mutation.noticedBy}: ${mutation.was}\n`);
}
process.stdout.write(`${wanted.length} mutants, ${unnoticed} not noticed\n`);
process.exit(unnoticed > 0 || wanted.length === 0 ? 1 : 0);

/** The case complains of the copy with the change. That it doesn't of the source is what the tests show. */
async function isNoticed(mutation: Mutation): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-mutant-"));
  try {
    for (const part of ["src/verifier", "src/text"])
      // oxlint-disable-next-line no-await-in-loop -- two folders
      await cp(join(root, part), join(folder, part), { recursive: true });
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), await readFile(join(root, "package.json")));
    await applyPatch(folder, mutation);
    const load = (file: string): Promise<object> =>
      import(pathToFileURL(join(folder, "src/verifier", file)).href);
    const verifier = {
      ...(await load("verify-evidence.ts")),
      ...(await load("appraise-evidence.ts")),
    } as Verifier;
    const its = cases.find(({ name }) => name === mutation.noticedBy);
    if (!its) throw new Error(`there is no case "${mutation.noticedBy}"`);
    return complaintsOf(its, verifier).length > 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
