import {
  divider,
  header,
  limits,
  message,
  type Message,
  readable,
  section,
} from "../messages/message.ts";
import { code, lines, Markdown, md, name } from "../messages/text.ts";
import { nearest } from "../nearest.ts";
import type { Command, CommandClass } from "./define.ts";
import { argumentsOf, flagName, usageOf } from "./usage.ts";

const asks: Readonly<Record<CommandClass, string>> = {
  read: "",
  change: "",
  disrupt: "interrupts what runs there",
  destroy: "destroys data: asks you to type the name, and others to approve",
  secret: "shown only to you",
  administer: "for administrators",
};

/** Help over the commands that a person may run; with a topic (`vm`, or `vm restart`) only those, in detail. */
export function renderHelp(commands: readonly Command[], topic = ""): Message {
  const wanted = topic.trim().replace(/^\/+/, "").toLowerCase();
  const one = commands.find((command) => command.name === wanted);
  if (one) return renderOne(one);
  const shown =
    wanted === "" ? commands : commands.filter((command) => command.name.startsWith(`${wanted} `));
  if (shown.length === 0) return noSuchTopic(wanted, commands);
  const tip = section(
    md`A VM or project is an id, a name, or ${name("project/name")}. ${name("/gatehouse help vm restart")} tells more about one. In a thread, write ${name("@gatehouse vm show web-1")}.`,
  );
  return message(
    "What you may run with Gatehouse",
    header("What you may run"),
    ...rootsOf(shown).flatMap((root) => {
      const ofRoot = shown.filter((command) => command.name.startsWith(`${root} `));
      return inSections(md`*/${root}*`, ofRoot.map(line));
    }),
    divider,
    tip,
  );
}

function noSuchTopic(wanted: string, commands: readonly Command[]): Message {
  if (commands.length === 0) {
    const nothing = md`You may not run anything here. Whoever runs Gatehouse can add you to ${name("gatehouse.yml")}.`;
    return message(readable(nothing), section(nothing));
  }
  const near = nearest(wanted, [...commands.map((command) => command.name), ...rootsOf(commands)]);
  const way = near
    ? md`Did you mean ${name(`/gatehouse help ${near}`)}?`
    : md`${name("/gatehouse help")} lists what you may run.`;
  const text = md`There is no help on ${name(wanted.slice(0, 60))}. ${way}`;
  return message(readable(text), section(text));
}

function rootsOf(commands: readonly Command[]): string[] {
  return [...new Set(commands.map((command) => command.name.split(" ")[0] ?? ""))];
}

/** Rows under a title, in as few sections as Slack's limit on their text allows. */
function inSections(title: Markdown, rows: readonly Markdown[]) {
  const full = limits.section - 100;
  const sections: Markdown[] = [];
  let open = title;
  for (const row of rows) {
    const longer = lines(open, row);
    if (longer.value.length > full) sections.push(open);
    open = longer.value.length > full ? row : longer;
  }
  return [...sections, open].map((text) => section(text));
}

function line(command: Command): Markdown {
  const note = asks[command.class] === "" ? md`` : md` _(${asks[command.class]})_`;
  return md`${name(usageOf(command, 100))} ${command.summary}${note}`;
}

function renderOne(command: Command): Message {
  const details = argumentsOf(command).map((argument) => {
    const shown = argument.isFlag ? flagName(argument.key) : argument.key;
    const what =
      argument.description ?? (argument.choices ? `one of ${argument.choices.join(", ")}` : "");
    return md`• ${name(shown)}${argument.isOptional ? " (optional)" : ""} ${what}`;
  });
  return message(
    `${usageOf(command)}: ${command.summary}`,
    section(
      lines(
        new Markdown(code(usageOf(command), 1000)),
        md`${command.summary}.${asks[command.class] === "" ? "" : ` It ${asks[command.class].replace(/^(shown|for)/, "is $1")}.`}`,
        ...details,
        md`For example: ${name(command.example)}`,
      ),
    ),
  );
}
