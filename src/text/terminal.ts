import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { codeOf, messageOf, withHint } from "../errors.ts";

/**
 * Characters that move a cursor, color, hide, or reorder text, or can't be seen. U+FE0F isn't among
 * them, because it turns a sign into an emoji.
 */
export const unseen = /[[\p{Cc}\p{Cs}\p{DI}\p{Zl}\p{Zp}\u2800\ufff9-\ufffb]--\ufe0f]/gv;

const unit = (codeUnit: string) => `\\u${codeUnit.charCodeAt(0).toString(16).padStart(4, "0")}`;
const shown = (character: string) => character.split("").map(unit).join("");

/**
 * Text for a terminal, with its line breaks and tabs. A character that a terminal would obey is
 * shown as `\u001b`, which has the same meaning within JSON.
 */
export function printable(text: string): string {
  return text.replaceAll(unseen, (character) =>
    character === "\n" || character === "\t" ? character : shown(character),
  );
}

/**
 * Like `printable`, for text that must stay on one line, so that no value can pretend to be a line
 * of its own.
 */
export function printableLine(text: string): string {
  return text.replaceAll(unseen, shown);
}

/** The exit code for wrong arguments: EX_USAGE of sysexits.h. */
export const usageExitCode = 64;

/** The arguments are wrong; the usage is printed below the message. */
export class UsageError extends Error {}

/** The arguments of a program, parsed by its options. */
export type Given<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; allowPositionals: true; options: Options }>
>;

/**
 * Runs a program in a terminal and resolves with its exit code. Errors go to `complain`, so that
 * none gets into the result, and the exit code is then `failed`. Never rejects.
 */
export async function runProgram<const Options extends ParseArgsOptionsConfig>(
  words: readonly string[],
  program: { usage: string; options: Options; failed: number; complain: (text: string) => void },
  run: (words: Given<Options>) => number | Promise<number>,
): Promise<number> {
  try {
    return await run(
      parseArgs({ args: [...words], allowPositionals: true, options: program.options }),
    );
  } catch (error) {
    const isOurs = error instanceof UsageError;
    const isOfWords = isOurs || codeOf(error).startsWith("ERR_PARSE_ARGS_");
    const complaint = isOurs ? error.message : messageOf(error);
    program.complain(
      isOfWords ? `${complaint}\n${program.usage}\n`.trimStart() : `${withHint(error, "\n")}\n`,
    );
    return isOfWords ? usageExitCode : program.failed;
  }
}
