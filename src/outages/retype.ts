import type { Command } from "../registry/define.ts";
import { argumentsOf, flagName } from "../registry/usage.ts";
import type { RequestRecord } from "../requests/record.ts";

/** The words that ask for the same again: `/vm resize payments/web-2 --cpu 4 --memory 16`. */
export function retype(
  command: Pick<Command, "name" | "args">,
  { target, input }: Pick<RequestRecord, "target" | "input">,
): string {
  const words = argumentsOf(command).flatMap(
    ({ key, target: kind, isFlag, isSwitch, isRolling }) => {
      if (isRolling) return [];
      if (kind !== undefined) {
        const owner = target.kind === "vm" && target.projectName ? `${target.projectName}/` : "";
        return [quoted(`${owner}${target.name}`)];
      }
      const value = input[key];
      if (isSwitch) return value === true ? [flagName(key)] : [];
      if (typeof value !== "string" && typeof value !== "number") return [];
      const text = quoted(String(value));
      return isFlag ? [flagName(key), text] : [text];
    },
  );
  return [`/${command.name}`, ...words].join(" ");
}

function quoted(text: string): string {
  return /^[^\s"'“”]+$/.test(text) ? text : `"${text.replaceAll('"', "")}"`;
}
