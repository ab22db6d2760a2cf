import type { Role } from "../config/config.ts";
import { version } from "../config/version.ts";
import { nearest } from "../text/nearest.ts";
import { printable } from "../text/printable.ts";

/** Exit code for words that mean nothing here: EX_USAGE of sysexits.h. */
export const usageExitCode = 64;

/** A program in a terminal. Its configuration is read only when it runs, never for its usage. */
interface Program {
  /** In a few words, for the list of all. */
  what: string;
  usage: string;
  /** Resolves with the exit code. `write` gets text that ends with a line break. */
  run(words: readonly string[], write: (text: string) => void): number | Promise<number>;
}

/** Everything but running Gatehouse, in the order of the usage. */
export type Programs = Readonly<Record<string, Program>>;

/** What the words on the command line ask for. */
export type Order =
  | { is: "role"; role: Role }
  | { is: "program"; name: string; words: readonly string[] }
  | { is: "usage"; of: string | undefined }
  | { is: "version" }
  | { is: "unknown"; sentence: string };

const roles: Readonly<Record<string, Role>> = { all: "all", gateway: "gateway", worker: "worker" };
const isHelp = (word: string | undefined) => word === "--help" || word === "-h";

/** A role and nothing else: to be run, without anything to look up. */
export function isRoleAlone(words: readonly string[]): boolean {
  const [word] = words;
  return words.length === 0 || (words.length === 1 && Object.hasOwn(roles, word ?? ""));
}

/** Decides by the words alone, whatever the configuration is. */
export function readWords(words: readonly string[], programs: Programs): Order {
  const [first, ...rest] = words;
  if (first === undefined) return { is: "role", role: "all" };
  if (isHelp(first)) return { is: "usage", of: undefined };
  if (first === "help") {
    const [of] = rest;
    return of === undefined || Object.hasOwn(programs, of)
      ? { is: "usage", of }
      : unknown(of, Object.keys(programs));
  }
  if (first === "--version" || first === "-V") return { is: "version" };
  const wantsHelp = rest
    .slice(0, rest.includes("--") ? rest.indexOf("--") : undefined)
    .some(isHelp);
  const role = Object.hasOwn(roles, first) ? roles[first] : undefined;
  if (role !== undefined) {
    if (wantsHelp) return { is: "usage", of: undefined };
    const [more] = rest;
    return more === undefined
      ? { is: "role", role }
      : { is: "unknown", sentence: `"${first}" takes no "${more}".` };
  }
  if (!Object.hasOwn(programs, first))
    return unknown(first, [...Object.keys(roles), ...Object.keys(programs), "help"]);
  return wantsHelp ? { is: "usage", of: first } : { is: "program", name: first, words: rest };
}

function unknown(word: string, known: readonly string[]): Order {
  const meant = nearest(word, known);
  const guess = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return { is: "unknown", sentence: `There is no "${word}".${guess}` };
}

/** What `--help` prints. */
export function usageOf(programs: Programs): string {
  const lines = Object.entries(programs).map(([name, { what }]) => `  ${name.padEnd(13)}${what}`);
  return `usage: node gatehouse.mjs [gateway|worker]
  runs Gatehouse; without a word, gateway and worker in one process

       node gatehouse.mjs <command>
${lines.join("\n")}
  help <command>, or <command> --help, tells more; --version (-V) prints the version

exit codes
  0    done; everything checked is well
  1    it failed, or something checked is not well
  2    audit, attestation: it can't be told
  3    audit verify: intact, but for losses that someone recorded
  64   the words mean nothing here
  78   the configuration or the runtime is wrong; each problem is printed, and a supervisor need not retry
`;
}

/**
 * Answers everything but a role, whose name it returns. Neither help nor unknown words need a configuration. What was asked
 * for goes to `write`, a complaint to `complain`.
 */
export async function runCommandLine(
  words: readonly string[],
  programs: Programs,
  out: { write: (text: string) => void; complain: (text: string) => void },
): Promise<{ role: Role } | { exitCode: number }> {
  // Names come from files and services: here, and nowhere else, they become inert for a terminal
  const write = (text: string) => out.write(printable(text));
  const complain = (text: string) => out.complain(printable(text));
  const order = readWords(words, programs);
  if (order.is === "role") return { role: order.role };
  if (order.is === "unknown") {
    complain(`${order.sentence}\n${usageOf(programs)}`);
    return { exitCode: usageExitCode };
  }
  if (order.is === "program") {
    const exitCode = await programs[order.name]?.run(order.words, write);
    return { exitCode: exitCode ?? usageExitCode };
  }
  if (order.is === "version") write(`gatehouse ${version}, Node.js ${process.version}\n`);
  else {
    const program = order.of === undefined ? undefined : programs[order.of];
    write(program === undefined ? usageOf(programs) : `${program.usage}\n`);
  }
  return { exitCode: 0 };
}
