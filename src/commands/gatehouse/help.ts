import * as z from "zod";
import { hintOf, md } from "../../messages/message.ts";
import {
  type Command,
  defineCommand,
  isChange,
  rest,
  takesBreakGlass,
} from "../../registry/define.ts";
import { isListed } from "../../core/permit/permit.ts";
import { whoMayRun } from "../../core/permit/refusal.ts";
import { type Withheld, renderHelp } from "../../registry/help.ts";
import type { ReadContext } from "../context.ts";
import { examplesHere } from "../examples.ts";

export const help = defineCommand({
  name: "gatehouse help",
  summary: "Show what you can run",
  example: "/gatehouse help vm restart",
  class: "read",
  // The answer depends on the requester.
  audience: "asker",
  isHelp: true,
  startLabel: "Help",
  args: z.object({
    command: rest(100, "a command, for its details; `all` for all of them").optional(),
  }),
  answer: async ({ command }, context: ReadContext) => {
    const { commands, person } = context;
    const exampleOf = await examplesHere(context);
    const inEmergency = isListed(person, "breakGlass", context)
      ? context.emergency?.help
      : undefined;
    const runnable = commands.filter((one) => context.mayRun(one));
    const others = commands.filter((one) => !runnable.includes(one));
    if (command !== undefined)
      await context.learnNames(
        others.flatMap((one) => whoMayRun({ ...context, command: one }).entries),
      );
    const withheld = others.map((one) => ({
      command: one,
      ...whoseWords(one, context),
      isForEmergencies: inEmergency !== undefined && takesBreakGlass(one),
    }));
    return renderHelp(runnable, command, exampleOf, inEmergency, withheld);
  },
});

/** Who may run a command that this person may not run, and the rule that says so. */
function whoseWords(command: Command, context: ReadContext): Pick<Withheld, "who" | "rule"> {
  const { nameOf } = context;
  const { entries, rules } = whoMayRun({ ...context, command });
  const ids = entries.filter((entry) => entry !== "*");
  const they = ids.map((id) => nameOf(id)?.replaceAll("`", "'") ?? `\`${id}\``);
  const who =
    ids.length < entries.length
      ? "Only full members of the workspace can"
      : ids.length === 0
        ? "No one can"
        : `Only ${inList(they)} can`;
  const isOne = rules.length === 1;
  const which = isOne || !isChange(command) ? "" : "; which ones depends on the rule";
  return {
    who: md`${hintOf(`${who} ${deedWords(command)}${which}.`)}`,
    rule: md`${isOne ? "The rule is" : "The rules are"} ${hintOf(inList(rules.map((rule) => `\`${rule}\``)))} in gatehouse.yml.`,
  };
}

const mostListed = 8;

/** `a, b, and c`, or the first of many. */
function inList(words: readonly string[]): string {
  const more = words.length - mostListed;
  const others = more > 0 ? [`${more} more`] : [];
  return new Intl.ListFormat("en-US").format([...words.slice(0, mostListed), ...others]);
}

/** `restart VMs`, or `run /gatehouse audit`. */
function deedWords(command: Command): string {
  if (!isChange(command)) return `run /${command.name}`;
  return `${command.say.verb.toLowerCase()} ${command.on === "vm" ? "VMs" : "projects"}`;
}
