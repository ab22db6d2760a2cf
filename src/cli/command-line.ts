import type { Role } from "../config/config.ts";
import { version } from "../config/version.ts";
import { nearest } from "../text/nearest.ts";
import { printable, usageExitCode } from "../text/terminal.ts";

/** A program in a terminal. Its configuration is read only when it runs, never for its usage. */
interface Program {
  /** A short description for the list of programs. */
  what: string;
  usage: string;
  /** Resolves with the exit code. `write` gets text that ends with a line break. */
  run(
    words: readonly string[],
    write: (text: string) => void,
    aside: Aside,
  ): number | Promise<number>;
}

/** Output of a program other than its result. */
interface Aside {
  complain: (text: string) => void;
  /**
   * Sets a function that returns what is printed on standard error when a signal ends the process.
   */
  onSignal: (tell: () => string) => void;
}

/** Everything except running Gatehouse itself, in the order of the usage. */
export type Programs = Readonly<Record<string, Program>>;

const roles: readonly Role[] = ["all", "gateway", "worker"];
export const roleIn = (word: string): Role | undefined => roles.find((role) => role === word);
const isHelp = (word: string) => word === "--help" || word === "-h";

/** Whether the arguments are only a role, so that it can run without looking anything up. */
export const isRoleAlone = ([word = "all", ...more]: readonly string[]): boolean =>
  roleIn(word) !== undefined && more.length === 0;

/** The text that `--help` prints. */
export function usageOfPrograms(programs: Programs): string {
  const lines = Object.entries(programs).map(([name, { what }]) => `  ${name.padEnd(13)}${what}`);
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
  out: { write: (text: string) => void } & Pick<Aside, "complain"> & Partial<Aside>,
): Promise<{ role: Role } | { exitCode: number }> {
  // Names come from files and services. All output passes through here, where it is made safe for a
  // terminal.
  const write = (text: string) => out.write(printable(text));
  const complain = (text: string) => out.complain(printable(text));
  const onSignal: Aside["onSignal"] = (tell) => out.onSignal?.(() => printable(tell()));
  const refuse = (sentence: string) => {
    complain(`${sentence}\n${usageOfPrograms(programs)}`);
    return { exitCode: usageExitCode };
  };
  const explain = (program?: Program) => {
    write(program === undefined ? usageOfPrograms(programs) : `${program.usage}\n`);
    return { exitCode: 0 };
  };
  const [asked, what] = words;
  // `help audit` is the same as `audit --help`.
  const [first = "all", ...rest] = asked === "help" ? [what ?? "--help", "--help"] : words;
  const [second] = rest;
  if (isHelp(first)) return explain();
  if (first === "--version" || first === "-V") {
    write(`gatehouse ${version}, Node.js ${process.version}\n`);
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
  return { exitCode: await program.run(rest, write, { complain, onSignal }) };
}
