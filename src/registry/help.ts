import { divider, header, message, type Message, section } from "../messages/message.ts";
import { lines, type Markdown, md, name } from "../messages/text.ts";
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
  const wanted = topic.replace(/^\//, "").trim().toLowerCase();
  const one = commands.find((command) => command.name === wanted);
  if (one) return renderOne(one);
  const shown =
    wanted === "" ? commands : commands.filter((command) => command.name.startsWith(`${wanted} `));
  if (shown.length === 0) {
    return message(
      `There is no help on ${wanted}.`,
      section(
        md`There is no help on ${name(wanted)}. ${name("/gatehouse help")} lists what you may run.`,
      ),
    );
  }
  const roots = [...new Set(shown.map((command) => command.name.split(" ")[0] ?? ""))];
  const blocks = roots.flatMap((root) => [
    section(
      lines(
        md`*/${root}*`,
        ...shown
          .filter((command) => command.name.startsWith(`${root} `))
          .map((command) => line(command)),
      ),
    ),
  ]);
  const tip = section(
    md`A VM or project is an id, a name, or ${name("project/name")}. ${name("/gatehouse help vm restart")} tells more about one. In a thread, write ${name("@gatehouse vm show web-1")}.`,
  );
  return message(
    "What you may run with Gatehouse",
    header("What you may run"),
    ...blocks,
    divider,
    tip,
  );
}

function line(command: Command): Markdown {
  const note = asks[command.class] === "" ? md`` : md` _(${asks[command.class]})_`;
  return md`${name(usageOf(command))} ${command.summary}${note}`;
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
        md`${name(usageOf(command))}`,
        md`${command.summary}.${asks[command.class] === "" ? "" : ` It ${asks[command.class].replace(/^(shown|for)/, "is $1")}.`}`,
        ...details,
        md`For example: ${name(command.example)}`,
      ),
    ),
  );
}
