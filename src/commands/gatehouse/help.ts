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
import { namesInWords } from "../../core/permit/access.ts";
import { deedInWords, whoMayRun } from "../../core/permit/refusal.ts";
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
  const { entries, rules } = whoMayRun({ ...context, command });
  const listed = entries.filter((entry) => entry !== "*");
  const who =
    listed.length < entries.length
      ? "Only full members of the workspace can"
      : listed.length === 0
        ? "No one can"
        : `Only ${namesInWords(listed, context.nameOf, mostListed)} can`;
  const isOne = rules.length === 1;
  const which = isOne || !isChange(command) ? "" : "; which ones depends on the rule";
  const places = inList.format(rules.map((rule) => `\`${rule}\``));
  return {
    who: md`${who} ${deedInWords({ command, targets: [] })}${which}.`,
    rule: md`${isOne ? "Rule" : "Rules"}: ${hintOf(places)} in gatehouse.yml.`,
  };
}

const mostListed = 8;
const inList = new Intl.ListFormat("en-US");
