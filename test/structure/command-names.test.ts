import { describe, expect, it } from "vitest";
import { commands, features } from "../../src/features/index.ts";
import { dottedName } from "../../src/registry/define.ts";
import { readSources } from "./sources.ts";

const names = commands.map(({ name }) => name);
const dotted = new Set(commands.map(dottedName));
const sources = [...readSources(["src"])];

/** Where a text asks for a command by its name: what depends on a command is a field of its definition. */
function askedByName(text: string, known: readonly string[] = names): string[] {
  const code = text.replaceAll(/\/\*[^]*?\*\/|\/\/.*$/gm, "");
  const elsewhere = code.replaceAll(/\bname: "[^"]*"/g, "");
  const literals = [...elsewhere.matchAll(/"([a-z]+ [a-z-]+)"/g)].map(
    ([, literal = ""]) => literal,
  );
  const roots = [...code.matchAll(/name\.startsWith\(["'`](\w+)/g)].map(([found]) => found);
  return [...literals.filter((literal) => known.some((name) => name === literal)), ...roots];
}

/** Those that a file may not name: a feature names its own. */
function namesFor(path: string): readonly string[] {
  const own = features.find((feature) => path.startsWith(`src/features/${feature.name}/`));
  return names.filter((name) => own?.commands?.some((command) => command.name === name) !== true);
}

/** Commands as buttons name them: `run:vm.show`, and `vm.show` where the button is put together. */
function onButtons(text: string): string[] {
  return [...text.matchAll(/["'`](?:run:)?((?:vm|project|gatehouse)\.[a-z-]+)(?::[a-z]+)?["'`]/g)]
    .map(([, name = ""]) => name)
    .filter((name) => !["gatehouse.yml", "gatehouse.mjs"].includes(name));
}

describe("the name of a command", () => {
  it("decides nothing outside the command's own file or feature", () => {
    const asking = sources
      .filter(([path]) => !path.startsWith("src/commands/"))
      .map(([path, text]) => [path, askedByName(text, namesFor(path))] as const)
      .filter(([, found]) => found.length > 0);
    expect(asking).toEqual([]);
    expect(askedByName('if (command.name === "vm restore") x()')).toEqual(["vm restore"]);
    expect(askedByName('command.name.startsWith("vm")')).toEqual(['name.startsWith("vm']);
  });

  it("is one that is there, wherever a button carries it", () => {
    const carried = sources.flatMap(([, text]) => onButtons(text));
    expect(carried).toContain("vm.show");
    expect(carried.filter((name) => !dotted.has(name))).toEqual([]);
  });
});
