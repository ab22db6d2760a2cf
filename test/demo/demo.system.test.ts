import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deployProposes } from "../../demo/programs.ts";
import { compileCache } from "../support/compile-cache.ts";
import { findProgram } from "../../sandbox/find-program.ts";
import { until } from "../support/until.ts";

/** Starts a program, and collects what it prints. */
function starts(program: string, words: readonly string[]) {
  const env = { ...process.env, ...compileCache };
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], env });
  const heard = { child, said: "" };
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (heard.said += chunk.toString()));
  return heard;
}

/** Types lines into a shell as they were printed. */
async function types(lines: readonly string[]): Promise<string> {
  const shell = starts("sh", ["-ec", lines.join("\n")]);
  await once(shell.child, "close");
  return shell.said;
}

describe("npm run demo", () => {
  let demo: ReturnType<typeof starts>;
  beforeAll(async () => {
    demo = starts(process.execPath, ["demo/demo.ts"]);
    await until(() => demo.said).toContain("Ctrl-C stops everything");
  });
  afterAll(async () => {
    demo.child.kill("SIGINT");
    await once(demo.child, "close");
  });

  /** The three lines from the one that sets a variable on. */
  const printed = (variable: string) => {
    const lines = demo.said.split("\n").map((line) => line.trim());
    const first = lines.findIndex((line) => line.startsWith(`export ${variable}=`));
    return lines.slice(first, first + 3);
  };

  it("prints lines that propose a change as a deploy job, just as they are", async () => {
    const said = await types(printed("GATEHOUSE_URL"));
    expect(said).toMatch(/^open: p-\w+ waits for someone to run it, until /m);
    expect(printed("GATEHOUSE_URL").at(-1)).toContain(deployProposes[0]);
  });

  it.skipIf(findProgram(["curl"]) === undefined)(
    "prints lines that propose a change as an agent over MCP, just as they are",
    async () => {
      const said = await types(printed("MCP_URL"));
      const { result } = JSON.parse(said) as { result: object };
      expect(result).toMatchObject({
        structuredContent: { state: "open", command: "vm snapshot web-2 before-the-fix" },
      });
    },
  );
});
