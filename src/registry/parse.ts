import { UserError } from "../errors.ts";
import type { Command } from "./define.ts";
export function parseCommand(text: string, commands: readonly Command[]): any {
  const words = text.trim().split(/\s+/);
  const command = commands.find((c) => c.name === words.slice(0, 2).join(" "));
  if (!command) return { refusal: { text: `There is no command ${words.slice(0, 2).join(" ")}.` } };
  const keys = Object.keys(command.args.shape);
  const input: any = {};
  keys.forEach((k, i) => { if (words[i + 2] !== undefined) input[k] = k.endsWith("s") ? words.slice(i + 2) : words[i + 2]; });
  return { command, input, args: parseInput(command, input), words };
}
export function parseInput(command: Command, input: Record<string, unknown>): any {
  const parsed = command.args.safeParse(input);
  if (!parsed.success) throw new UserError(`wrong arguments for ${command.name}`);
  return parsed.data;
}
