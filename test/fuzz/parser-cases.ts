import * as fc from "fast-check";
import { commands } from "../../src/features/index.ts";
import { type Command, type Argument, argumentsOf, flagName } from "../../src/registry/define.ts";
import { anyJson, anyWord, longText } from "./texts.ts";

export type Case =
  | { is: "text"; text: string }
  /** Written from these arguments: reads back as the same. */
  | { is: "written"; command: Command; input: Record<string, unknown>; text: string }
  /** What a button, a form or the journal holds. */
  | { is: "input"; command: Command; input: Record<string, unknown> };

const anyCommand = fc.constantFrom(...commands);

/** A quote that can hold this text, or undefined. */
function quoted(text: string): string | undefined {
  const pair = [
    ['"', '"'],
    ["'", "'"],
    ["“", "”"],
    ["«", "»"],
  ].find(([, close]) => !text.includes(close ?? ""));
  return pair?.join(escaped(text));
}

/** As Slack sends what was typed. */
const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** `/vm restart --vms "a,b"`: each argument by its name, quoted. Undefined where words can't say it. */
function written(command: Command, input: Record<string, unknown>): string | undefined {
  const words: string[] = [];
  for (const [key, value] of Object.entries(input)) {
    if (value === true) words.push(flagName(key));
    else {
      const list = [value].flat().filter((one) => typeof one === "string");
      const said = quoted(list.join(","));
      if (
        said === undefined ||
        list.some((one) => Array.isArray(value) && (one === "" || one.includes(",")))
      )
        return undefined;
      words.push(`${flagName(key)} ${said}`);
    }
  }
  return [command.name, ...words].join(" ");
}

/** Texts that a person can say: nothing that is taken off because it can't be seen. */
const sayable = fc
  .oneof(
    fc.constantFrom(
      "4",
      "16",
      "eu-west-1",
      "web-1",
      "payments/web-1",
      "web-*",
      "1h",
      "10%",
      "snap-1",
    ),
    fc.constantFrom(
      "2 words",
      "--yes",
      "-x",
      "—raw",
      "`web-1`",
      "it's",
      "<!channel>",
      "a&lt;b",
      "x".repeat(301),
    ),
    fc.string({ unit: "grapheme", maxLength: 30 }),
    fc.string({ maxLength: 30 }),
  )
  .filter((text) => !/[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]/.test(text));

function valueFor({ isSwitch, isList, choices }: Argument): fc.Arbitrary<unknown> {
  if (isSwitch) return fc.constant(true);
  if (isList)
    return fc.array(
      sayable.filter((text) => text !== "" && !text.includes(",")),
      { minLength: 1, maxLength: 4 },
    );
  return choices
    ? fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...choices) },
        { weight: 1, arbitrary: sayable },
      )
    : sayable;
}

const writtenCase: fc.Arbitrary<Case> = anyCommand.chain((command) => {
  const all = argumentsOf(command).filter(({ isRest }) => !isRest);
  const shape = Object.fromEntries(all.map((argument) => [argument.key, valueFor(argument)]));
  const needed = all.filter(({ isOptional }) => !isOptional).map(({ key }) => key);
  return fc.record(shape, { requiredKeys: needed }).map((input): Case => {
    const own = { ...input };
    const text = written(command, own);
    return text === undefined
      ? { is: "text", text: command.name }
      : { is: "written", command, input: own, text };
  });
});

/** A right command with something cut out, put in, doubled or swapped. */
const mutated: fc.Arbitrary<Case> = fc
  .tuple(
    anyCommand.map(({ example }) => example),
    fc.array(
      fc.tuple(
        fc.nat({ max: 80 }),
        fc.nat({ max: 12 }),
        fc.oneof(
          anyWord,
          anyCommand.map(({ example }) => example),
        ),
      ),
      { minLength: 1, maxLength: 4 },
    ),
    fc.boolean(),
  )
  .map(([example, edits, isEscaped]): Case => {
    let text = example;
    for (const [at, cut, put] of edits) text = `${text.slice(0, at)}${put}${text.slice(at + cut)}`;
    return { is: "text", text: isEscaped ? escaped(text) : text };
  });

const words: fc.Arbitrary<Case> = fc
  .tuple(
    fc.constantFrom("", "vm", "project", "gatehouse", "/vm", "VM", "constructor", "__proto__"),
    fc.array(anyWord, { maxLength: 8 }),
  )
  .map(([root, rest]): Case => ({ is: "text", text: [root, ...rest].join(" ") }));

const long: fc.Arbitrary<Case> = fc
  .tuple(anyCommand, longText)
  .map(([{ name }, text]): Case => ({ is: "text", text: `${name} ${text}` }));

const anyInput: fc.Arbitrary<Case> = anyCommand.chain((command) => {
  const keys = [...Object.keys(command.args.shape), "__proto__", "constructor", "extra"];
  return fc
    .array(
      fc.tuple(
        fc.constantFrom(...keys),
        fc.oneof(anyJson, anyWord, fc.array(anyWord, { maxLength: 3 }), longText),
      ),
      { maxLength: 5 },
    )
    .map((entries): Case => ({
      is: "input",
      command,
      input: JSON.parse(
        `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`,
      ) as Record<string, unknown>,
    }));
});

export const anyCase: fc.Arbitrary<Case> = fc.oneof(
  { weight: 4, arbitrary: mutated },
  { weight: 3, arbitrary: words },
  { weight: 1, arbitrary: long },
  { weight: 4, arbitrary: writtenCase },
  { weight: 3, arbitrary: anyInput },
);
