import { UserError } from "../errors.ts";
import { nearest } from "../nearest.ts";
import type { Command } from "./define.ts";
import type { Word } from "./tokenize.ts";

/** Which command words name, and what is left of them. Throws UserError with what was probably meant. */
export function findCommand(
  words: readonly Word[],
  commands: readonly Command[],
): { command: Command; rest: readonly Word[] } {
  const root = (words[0]?.text ?? "").replace(/^\/+/, "").toLowerCase();
  const verb = words[1]?.text.toLowerCase() ?? "";
  const rest = words.slice(2);
  const ofRoot = commands.filter(({ name }) => name.startsWith(`${root} `));
  if (ofRoot.length === 0) throw unknownRoot(words[0]?.text ?? "", root, commands);

  const help = commands.find(({ name }) => name === "gatehouse help");
  const command = ofRoot.find(({ name }) => name === `${root} ${verb}`);
  if (help && command && rest.some(isHelpFlag))
    return { command: help, rest: command.name.split(" ").map(plainWord) };
  if (command) return { command, rest };
  if (help && (verb === "" || verb === "help" || verb === "--help")) {
    const topic = root === "gatehouse" ? [] : [plainWord(root)];
    return { command: help, rest: [...topic, ...rest] };
  }
  throw unknownVerb(root, words[1]?.text ?? "", rest, ofRoot);
}

const isHelpFlag = ({ text, isQuoted }: Word) => text === "--help" && !isQuoted;

const plainWord = (text: string): Word => ({ text, isQuoted: false });

function unknownRoot(typed: string, root: string, commands: readonly Command[]): UserError {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))];
  const all = `There are ${roots.map((one) => `\`/${one}\``).join(", ")}.`;
  if (root === "") return new UserError("That names no command.", all);
  const near = nearest(root, roots);
  return new UserError(
    `There is no command ${cut(typed)}.`,
    near ? `Did you mean \`/${near}\`?` : all,
  );
}

function unknownVerb(
  root: string,
  typed: string,
  rest: readonly Word[],
  ofRoot: readonly Command[],
): UserError {
  const verbs = ofRoot.map(({ name }) => name.slice(root.length + 1));
  const near = nearest(typed, verbs);
  const next = rest[0]?.text.toLowerCase();
  const list = `\`/${root} help\` lists what there is.`;
  if (near)
    return new UserError(`/${root} has no ${cut(typed)}.`, `Did you mean \`/${root} ${near}\`?`);
  // `/vm web-1 restart`, and `/vm web-1`: a name where the verb belongs
  const meant =
    next !== undefined && verbs.includes(next)
      ? next
      : rest.length === 0 && verbs.includes("show")
        ? "show"
        : undefined;
  const name = quotable(typed);
  return new UserError(
    `/${root} has no ${cut(typed)}.`,
    meant
      ? `Did you mean \`/${root} ${meant} ${name}\`? \`/${root} help\` lists what there is.`
      : list,
  );
}

/** As it would have to be typed, on one line and inside a code span. */
function quotable(text: string): string {
  const shown = cut(text).replaceAll(/[`"]/g, "");
  return /\s/.test(shown) ? `"${shown}"` : shown;
}

function cut(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}
