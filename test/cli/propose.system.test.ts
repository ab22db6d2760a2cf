import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { listen } from "../../sandbox/listen.ts";
import { startProgram } from "../support/start-program.ts";

const words = ["propose", "vm snapshot db-1 before-deploy", "--reason", "release 42"];
const propose = (url: string, ...more: string[]) =>
  startProgram([...words, ...more], { GATEHOUSE_URL: url, GATEHOUSE_TOKEN: "fake-token" });

describe("propose as a program", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("says on %s what stands, and ends with %i", async (signal, code) => {
    const server = createServer();
    const { url, close } = await listen(server, 0);
    onTestFinished(() => (server.closeAllConnections(), close()));
    await using program = propose(url, "--key", "ci-42");
    await once(server, "request");
    program.child.kill(signal);
    expect([await program.ended, program.output()]).toEqual([
      code,
      "The proposal may have been made. The same command with --key ci-42 asks again without making a second.\n",
    ]);
  });

  it("ends with 78 where a variable is wrong, and names it", async () => {
    await using program = propose("ftp://gatehouse.example");
    expect(await program.ended).toBe(78);
    expect(program.output()).toMatch(/GATEHOUSE_URL: must be/);
  });
});
