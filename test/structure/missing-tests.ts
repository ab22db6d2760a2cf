import { importsOf, type Sources } from "./sources.ts";

/**
 * What has no test: a command whose words no test says and whose file none imports, a folder of src without tests,
 * a file directly in src that no test beside it reaches. `sources` are src and test together.
 */
export function missingTests(sources: Sources): readonly string[] {
  const paths = [...sources.keys()];
  const tests = new Map(
    [...sources].filter(
      ([path]) => path.endsWith(".test.ts") && !path.startsWith("test/structure/"),
    ),
  );
  return [
    ...commandFiles(paths)
      .filter((path) => !isCommandTested(path, tests))
      .map((path) => `${path} has no test`),
    ...folders(paths)
      .filter((folder) => ![...tests.keys()].some((path) => path.startsWith(`test/${folder}/`)))
      .map((folder) => `src/${folder}/ has no test in test/${folder}/`),
    ...untestedRootFiles(sources, tests).map((path) => `${path} is reached by no test in test/`),
  ];
}

function commandFiles(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => /^src\/commands\/(vm|project|gatehouse)\/[^/]+\.ts$/.test(path));
}

/** `src/commands/vm/restart.ts` is tested where `vm restart` is said or the file is imported. */
function isCommandTested(path: string, tests: Sources): boolean {
  const [, , group = "", file = ""] = path.split("/");
  const words = new RegExp(`\\b${group} ${file.replace(/\.ts$/, "").replace("-", "[ -]")}\\b`);
  return [...tests].some(
    ([test, text]) => words.test(text) || importsOf(test, text).includes(path),
  );
}

function folders(paths: readonly string[]): readonly string[] {
  const names = paths.filter((path) => path.startsWith("src/")).map((path) => path.split("/"));
  return [
    ...new Set(
      names.flatMap(([, folder, file]) =>
        folder !== undefined && file !== undefined ? [folder] : [],
      ),
    ),
  ];
}

/** Programs are started by stories; the rest must be reached from a test through files of src itself. */
function untestedRootFiles(sources: Sources, tests: Sources): readonly string[] {
  const reached = new Set<string>();
  const walk = (path: string): void => {
    if (reached.has(path) || !isRootFile(path)) return;
    reached.add(path);
    for (const target of importsOf(path, sources.get(path) ?? "")) walk(target);
  };
  // What a process is made of is run by every story
  for (const program of ["src/main.ts", "src/operate/process.ts", "src/operate/start.ts"])
    walk(program);
  for (const [test, text] of tests) for (const target of importsOf(test, text)) walk(target);
  return [...sources.keys()].filter((path) => isRootFile(path) && !reached.has(path));
}

function isRootFile(path: string): boolean {
  return /^src\/[^/]+\.ts$/.test(path);
}
