import type { Command, CommandClass } from "./define.ts";
import { usageOf } from "./usage.ts";

const needs: Readonly<Record<CommandClass, string>> = {
  read: "view",
  change: "operate",
  disrupt: "operate",
  destroy: "operate, the typed name, approvals",
  secret: "operate; shown only to you",
  administer: "administer",
};

const start = "<!-- commands: made from src/commands by npm run derive -->";
const end = "<!-- /commands -->";

/** The commands as the table in README. */
export function renderTable(commands: readonly Command[]): string {
  const rows = commands.map((command) => {
    const usage = usageOf(command).replaceAll("|", String.raw`\|`);
    return `| \`${usage}\` | ${command.summary} | ${needs[command.class]} |`;
  });
  return ["| words | what it does | who |", "| --- | --- | --- |", ...rows].join("\n");
}

/** README with its table made anew. Throws when the markers are missing. */
export function withTable(readme: string, commands: readonly Command[]): string {
  const from = readme.indexOf(start);
  const to = readme.indexOf(end);
  if (from < 0 || to < from) throw new Error(`README.md lacks "${start}" … "${end}"`);
  return `${readme.slice(0, from + start.length)}\n\n${renderTable(commands)}\n\n${readme.slice(to)}`;
}
