import type { Role } from "../config/config.ts";
import { versionInWords } from "../config/version.ts";
import { nearest } from "../text/nearest.ts";
import { printable, usageExitCode } from "../text/terminal.ts";

/** A program in a terminal. Its configuration is read only when it runs, never for its usage. */
interface Program {
  /** A short description for the list of programs. */
  summary: string;
  /** Loads its code, which neither the list of programs nor the version needs. */
  load(): Promise<{
    usage: string;
    /** Resolves with the exit code. */
    run(words: readonly string[], out: ProgramOutput): number | Promise<number>;
  }>;
}

/** Where a program prints. All texts end with a line break. */
interface ProgramOutput {
  /** Gets the result, which may go into a file or another program. */
  write: (text: string) => void;
  /** Gets what isn't the result: what is wrong, and what keeps a person waiting. */
  complain: (text: string) => void;
  /**
   * Sets a function that returns what is printed on standard error when a signal ends the process.
   */
  onSignal: (lastWords: () => string) => void;
}

/** Everything except running Gatehouse itself, in the order of the usage. */
export type Programs = Readonly<Record<string, Program>>;

const roles: readonly Role[] = ["all", "gateway", "worker"];
export const roleIn = (word: string): Role | undefined => roles.find((role) => role === word);
const isHelp = (word: string) => word === "--help" || word === "-h";

/** The text that `--help` prints. */
export function usageOfPrograms(programs: Programs): string {
  const lines = Object.entries(programs).map(
    ([name, { summary }]) => `  ${name.padEnd(13)}${summary}`,
  );
  return `usage: node gatehouse.mjs [gateway|worker]
  runs Gatehouse; without an argument, gateway and worker in one process

       node gatehouse.mjs <command>
${lines.join("\n")}
  help <command>, or <command> --help, explains it; --version (-V) prints the version

exit codes
  0    done; every check passed
  1    it failed, or a check found a problem
  2    audit, attestation: inconclusive
  3    audit verify: intact, except for losses that someone recorded
  64   unknown command or option
  78   the configuration or the runtime is wrong; each problem is printed; restarting doesn't help
`;
}

/**
 * Handles everything except a role, whose name it returns. Neither help nor unknown words need a
 * configuration. Results go to `write`, complaints to `complain`.
 */
export async function runCommandLine(
  words: readonly string[],
  programs: Programs,
  out: Pick<ProgramOutput, "write" | "complain"> & Partial<ProgramOutput>,
): Promise<{ role: Role } | { exitCode: number }> {
  // Names come from files and services. All output passes through here, where it is made safe for a
  // terminal.
  const write = (text: string) => out.write(printable(text));
  const complain = (text: string) => out.complain(printable(text));
  const onSignal: ProgramOutput["onSignal"] = (lastWords) =>
    out.onSignal?.(() => printable(lastWords()));
  const refuse = (sentence: string) => {
    complain(`${sentence}\n${usageOfPrograms(programs)}`);
    return { exitCode: usageExitCode };
  };
  const explain = async (program?: Program) => {
    write(program ? `${(await program.load()).usage}\n` : usageOfPrograms(programs));
    return { exitCode: 0 };
  };
  const [asked, topic] = words;
  // `help audit` is the same as `audit --help`.
  const [first = "all", ...rest] = asked === "help" ? [topic ?? "--help", "--help"] : words;
  const [second] = rest;
  if (isHelp(first)) return explain();
  if (first === "--version" || first === "-V") {
    write(`gatehouse ${versionInWords()}, Node.js ${process.version}\n`);
    return { exitCode: 0 };
  }
  const wantsHelp = rest.some((word, at) => isHelp(word) && !rest.slice(0, at).includes("--"));
  const role = roleIn(first);
  if (role !== undefined) {
    if (wantsHelp) return explain();
    return second === undefined ? { role } : refuse(`"${first}" takes no "${second}".`);
  }
  const program = Object.hasOwn(programs, first) ? programs[first] : undefined;
  if (program === undefined) {
    const meant = nearest(first, [...roles, ...Object.keys(programs), "help"]);
    const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    return refuse(`Unknown command "${first}".${hint}`);
  }
  if (wantsHelp) return explain(program);
  const { run } = await program.load();
  return { exitCode: await run(rest, { write, complain, onSignal }) };
}
