import { describe, expect, it } from "vitest";
import { UserError } from "../../src/errors.ts";
import { runProgram, UsageError } from "../../src/text/terminal.ts";

const options = { who: { type: "string" } } as const;

/** Runs it as typed; `act` gets what `--who` says. */
async function typed(words: readonly string[], act: (who?: string) => number) {
  let said = "";
  const complain = (text: string) => void (said += text);
  const program = { usage: "usage: greet", options, failed: 2, complain };
  const code = await runProgram(words, program, ({ values }) => act(values.who));
  return { code, said };
}

const fails = (error: Error) => () => {
  throw error;
};

describe("a program in a terminal", () => {
  it("ends with what it resolves with", async () => {
    expect(await typed(["--who", "olivia"], (who) => (who === "olivia" ? 0 : 1))).toEqual({
      code: 0,
      said: "",
    });
  });

  it("answers words that mean nothing with its usage, and 64", async () => {
    const { code, said } = await typed(["--what"], () => 0);
    expect({ code, end: said.endsWith("\nusage: greet\n") }).toEqual({ code: 64, end: true });
    expect(said).toContain("--what");
    expect(await typed([], fails(new UsageError("Say who")))).toEqual({
      code: 64,
      said: "Say who\nusage: greet\n",
    });
    expect(await typed([], fails(new UsageError()))).toEqual({ code: 64, said: "usage: greet\n" });
  });

  it("writes what goes wrong, with the hint, and never rejects", async () => {
    expect(await typed([], fails(new UserError("No Redis", "set REDIS_URL")))).toEqual({
      code: 2,
      said: "No Redis\nset REDIS_URL\n",
    });
    expect(await typed([], fails(new Error("boom")))).toEqual({ code: 2, said: "boom\n" });
  });
});
