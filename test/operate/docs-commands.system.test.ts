import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { runCommandLine } from "../../src/cli/command-line.ts";
import { programsFor } from "../../src/cli/programs.ts";
import { rows } from "../faults/rows/index.ts";
import { root } from "../structure/sources.ts";
import { startNode } from "../support/start-program.ts";
import { startWorldForPrograms } from "../support/start-world.ts";
import { handedToPrograms } from "../../src/features/index.ts";
import { until } from "../support/until.ts";

const programs = programsFor(async () => handedToPrograms);

/** What can't run here, and what it takes. */
const elsewhere: [command: RegExp, needs: string][] = [
  [/^npm ci\b/, "a registry: .ci/run, .ci/set-up, and .ci/matrix run it"],
  [/^npm install @opentelemetry\//, "a registry; traces.system.test.ts loads these versions"],
  [/^npm (test|run (demo|tour|check:rules|release))$/, "CI, and tests of their own"],
  [/^node gatehouse\.mjs policy check$/, "release.system.test.ts, which types all of install.md"],
  [/^node --env-file=\.env gatehouse\.mjs( doctor)?$/, "release.system.test.ts, too"],
  [/ audit archive /, "a trail of more than 90 days: test/cli/audit.test.ts makes one"],
  [/^docker /, "a Docker engine: compose.system.test.ts"],
  [/^kubectl /, "a cluster"],
  [/^\$EDITOR /, "a person"],
  [/^(systemctl|cp -r) /, "systemd: systemd.system.test.ts pastes them"],
  [/^jq /, "a log on standard input"],
];

/** The commands in indented and fenced blocks, one by one, as they are typed. */
function commandsOf(document: string): string[] {
  const text = readFileSync(path.join(root, document), "utf8").replaceAll(/\\\n\s*/g, "");
  const fenced = [...text.matchAll(/^```(?:sh|console)\n([^]*?)^```/gm)].map(([, one = ""]) => one);
  const indented = [...text.matchAll(/^ {4}(\S.*)$/gm)].map(([, line = ""]) => line);
  return [...fenced.flatMap((block) => block.split("\n")), ...indented]
    .map((line) => line.replace(/\s+#.*$/, "").trim())
    .filter((line) => /^(npm|node|npx|cp|docker|kubectl|systemctl|\$EDITOR|jq|git)\b/.test(line))
    .flatMap((line) => line.split(" && "));
}

/** What reads nothing but files needs no process. */
async function runHere(command: string, words: readonly string[]) {
  let said = "";
  const write = (text: string) => void (said += text);
  const ended = await runCommandLine(words, programs, { write, complain: write });
  const code = "exitCode" in ended ? ended.exitCode : undefined;
  return { command, code, said: code === 0 ? "" : said };
}

it("every command of README, install, operate, and policy runs as it stands there, or takes what isn't here", async () => {
  await using world = await startWorldForPrograms({ roles: ["all"] });
  await world.olivia.types("ops", "/vm restart web-2");
  await world.ended();
  await until(() => world.client.exists(world.key("audit", "seals"))).toBe(1);
  const folder = path.dirname(world.env["GATEHOUSE_CONFIG"] ?? "");
  const envFile = path.join(folder, "env");
  const lines = Object.entries({ ...world.env, DATA_DIR: path.join(folder, "data-of-docs") });
  writeFileSync(envFile, lines.map(([name, value]) => `${name}=${value}`).join("\n"));
  /** Resolves with the exit code and the last words. */
  const run = async (command: string) => {
    const typed = command
      .replace(".env", envFile)
      .replace("trail.json", path.join(folder, "trail.json"));
    const [, ...words] = (typed.match(/"[^"]*"|\S+/g) ?? []).map((word) =>
      word.replaceAll('"', ""),
    );
    if (words[1] === "policy") return runHere(command, words.slice(1));
    await using program = startNode(words, { REDIS_URL: world.redisUrl });
    const code = await program.ended;
    return { command, code, said: code === 0 ? "" : program.output().slice(-500) };
  };
  const commands = new Set(
    ["README.md", "docs/install.md", "docs/operate.md", "docs/policy.md"].flatMap(commandsOf),
  );
  const here = [...commands].filter((command) => !elsewhere.some(([those]) => those.test(command)));
  const running = here.filter((command) => command.startsWith("node "));
  expect(running.length).toBeGreaterThan(4);
  const well = running.map((command) => ({ command, code: 0, said: "" }));
  expect(await Promise.all(running.map(run))).toEqual(well);
  for (const command of here.filter((one) => !running.includes(one))) {
    const [program, from = "", to = ""] = command.split(" ");
    expect(program, command).toBe("cp");
    expect(existsSync(path.join(root, from)), command).toBe(true);
    cpSync(path.join(root, from), path.join(folder, path.basename(to)));
  }
  // In the text, not in a block
  const drill = /npm run faults -- --only (\w+)/.exec(
    readFileSync(path.join(root, "docs/operate.md"), "utf8"),
  );
  expect(rows.map(({ id }) => id)).toContain(drill?.[1]);
});
