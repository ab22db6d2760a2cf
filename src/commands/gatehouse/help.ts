import * as z from "zod";
import { type Message } from "../../messages/blocks.ts";
import { paragraph } from "../../messages/parts.ts";
import { sentence } from "../../messages/card.ts";
import { type Markdown, hintOf, lines, md, name } from "../../messages/markdown.ts";
import { emergencyWordsOf, noEmergency } from "../../registry/emergency.ts";
import { fold } from "../../text/fold.ts";
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
  roles: ["help"],
  startLabel: "Help",
  args: z.object({
    command: rest(100, "a command, for its details; `all` for all of them").optional(),
  }),
  answer: async ({ command }, reading: ReadContext) => {
    const { commands, person } = reading;
    const exampleOf = await examplesHere(reading);
    const inEmergency = isListed(person, "breakGlass", reading)
      ? emergencyWordsOf.ifAny(reading)?.help
      : undefined;
    const runnable = commands.filter((candidate) => reading.mayRun(candidate));
    const others = commands.filter((candidate) => !runnable.includes(candidate));
    if (command !== undefined && emergencyTopic.test(fold(command)))
      return explainEmergency(reading, inEmergency);
    if (command === undefined) return renderHelp(runnable, command, exampleOf, inEmergency);
    await reading.learnNames(
      others.flatMap((other) => whoMayRun({ ...reading, command: other }).entries),
    );
    const withheld = others.map((other) => ({
      command: other,
      ...whoseWords(other, reading),
      isForEmergencies: inEmergency !== undefined && takesBreakGlass(other),
    }));
    return renderHelp(runnable, command, exampleOf, inEmergency, withheld);
  },
});

const emergencyTopic = /^\s*(?:--)?(?:break[- ]?glass|emergenc(?:y|ies))\s*$/;

/** Explains `--break-glass`, which is a flag of several commands, to whoever asks for it. */
function explainEmergency(reading: ReadContext, inEmergency: Markdown | undefined): Message {
  const emergency = emergencyWordsOf.ifAny(reading);
  if (!emergency) {
    const { message, hint } = noEmergency();
    return sentence(lines(md`${message}`, hintOf(hint)));
  }
  const names = reading.commands.filter(takesBreakGlass).map((command) => `\`/${command.name}\``);
  const where = md`It works with ${hintOf(inList.format(names))}, for one target that is named exactly, in a slash command.`;
  const who = inEmergency
    ? md`You are under ${name("breakGlass")} in gatehouse.yml, so you can use it.`
    : md`Only people under ${name("breakGlass")} in gatehouse.yml can use --break-glass. You aren't among them: request the change, and ask somebody to approve it.`;
  return inEmergency
    ? sentence(emergency.help, paragraph(lines(where, who)))
    : sentence(who, paragraph(lines(emergency.help, where)));
}

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
