import { UserError } from "../errors.ts";
import type { Command } from "./define.ts";
import type { Word } from "./tokenize.ts";

/** `--break-glass "reason"`, understood by everything that disrupts or destroys; policy says by whom. */
export function takeBreakGlass(
  command: Command,
  words: readonly Word[],
): { rest: Word[]; reason?: string } {
  const at = words.findIndex(({ text, isQuoted }) => !isQuoted && /^--break-glass(=|$)/.test(text));
  if (at < 0 || (command.class !== "disrupt" && command.class !== "destroy")) {
    return { rest: [...words] };
  }
  const [, inline] = /^--break-glass=([\s\S]*)$/.exec(words[at]?.text ?? "") ?? [];
  const next = words[at + 1];
  const reason = (inline ?? next?.text ?? "").trim();
  if (reason.length < 3 || (inline === undefined && !next?.isQuoted && reason.startsWith("--"))) {
    throw new UserError(
      "--break-glass needs a reason.",
      `Like \`${command.example} --break-glass "why it can't wait"\`.`,
    );
  }
  return { rest: words.toSpliced(at, inline === undefined ? 2 : 1), reason: reason.slice(0, 300) };
}
