import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parse, stringify } from "yaml";

/**
 * Renders a chart as `helm template` does, without Helm, which no package brings here: the part of Go's templates that ours use.
 * Whatever else a template says throws. test/operate/chart.system.test.ts compares it with Go's own templates, and with Helm where it
 * is installed.
 */
export function renderChart(
  folder: string,
  {
    release,
    namespace,
    values,
    revision = 1,
  }: { release: string; namespace: string; values: Values; revision?: number },
): Map<string, string> {
  const textOf = (name: string) => readFileSync(path.join(folder, name), "utf8");
  const chart = parse(textOf("Chart.yaml")) as { name: string; appVersion: string };
  const given = {
    Values: merged(parse(textOf("values.yaml")) as Values, values),
    Release: { Name: release, Namespace: namespace, Service: "Helm", Revision: revision },
    Chart: { Name: chart.name, AppVersion: chart.appVersion },
    Files: { Get: textOf },
  };
  const defined = new Map<string, Node[]>();
  const names = readdirSync(path.join(folder, "templates")).toSorted();
  const parsed = names.map((name) => {
    const tokens = tokensOf(textOf(`templates/${name}`));
    const nodes = nodesOf(tokens, defined);
    if (tokens.length > 0) throw new Error(`${name}: an end too many`);
    return { name, nodes };
  });
  const write = (nodes: readonly Node[], scope: Scope): string =>
    nodes.map((node) => (typeof node === "string" ? node : act(node, scope))).join("");

  function act(node: Block, scope: Scope): string {
    if (node.kind === "value") {
      const set = /^(\$\w+) (:?=) ([^]+)$/.exec(node.words);
      if (!set) return shown(valueOf(node.words, scope));
      const [, name = "", sign, words = ""] = set;
      const home = sign === "=" ? holderOf(scope, name) : scope.variables;
      home[name] = valueOf(words, scope);
      return "";
    }
    if (node.kind === "range") {
      const [, key, item, words = ""] = /^(?:(\$\w+), (\$\w+) := )?([^]+)$/.exec(node.words) ?? [];
      const found = valueOf(words, scope);
      const entries = Array.isArray(found)
        ? found.map((one, at) => [at, one] as const)
        : Object.entries((found ?? {}) as Values).toSorted(([a], [b]) => (a < b ? -1 : 1));
      return entries
        .map(([at, one]) =>
          write(node.inside, inner(scope, one, key && item ? { [key]: at, [item]: one } : {})),
        )
        .join("");
    }
    const found = valueOf(node.words, scope);
    const isTrue = isFull(found);
    return write(
      isTrue ? node.inside : node.otherwise,
      inner(scope, isTrue && node.kind === "with" ? found : scope.dot),
    );
  }

  function valueOf(words: string, scope: Scope): unknown {
    const rest = wordsOf(words);
    const value = pipeline(rest, scope);
    if (rest.length > 0) throw new Error(`${words}: can't be read from ${rest[0]}`);
    return value;
  }

  function pipeline(rest: string[], scope: Scope): unknown {
    let value = call(rest, scope, []);
    while (rest[0] === "|") {
      rest.shift();
      value = call(rest, scope, [value]);
    }
    return value;
  }

  /** One command of a pipeline; what the one before gave is its last argument. */
  function call(rest: string[], scope: Scope, last: unknown[]): unknown {
    const [first = ""] = rest;
    const isCall = /^[a-z]/i.test(first) && !["true", "false"].includes(first);
    const name = isCall ? rest.shift() : undefined;
    const args: unknown[] = [];
    while (rest[0] !== undefined && !["|", ")"].includes(rest[0])) args.push(operand(rest, scope));
    if (name === undefined) {
      const [method, ...others] = args;
      if (typeof method === "function") return method(...others, ...last);
      if (args.length + last.length !== 1) throw new Error(`${first}: one value is needed`);
      return args[0];
    }
    return functionNamed(name)(...args, ...last);
  }

  function operand(rest: string[], scope: Scope): unknown {
    const word = rest.shift() ?? "";
    if (word === "(") {
      const value = pipeline(rest, scope);
      if (rest.shift() !== ")") throw new Error("a ) is missing");
      return value;
    }
    if (word.startsWith('"')) return JSON.parse(word);
    if (/^(\d+|true|false)$/.test(word)) return JSON.parse(word);
    const [, variable, fields = ""] = /^(\$\w*)?((?:\.\w+)*|\.)$/.exec(word) ?? [];
    if (!variable && !fields) throw new Error(`${word}: neither a value nor a field`);
    let value: unknown = scope.dot;
    if (variable) value = variable === "$" ? scope.top : holderOf(scope, variable)[variable];
    for (const field of fields.split(".").filter((one) => one !== ""))
      value = (value as Values | undefined)?.[field];
    return value;
  }

  const functions: Record<string, (...args: never[]) => unknown> = {
    include: (name: string, dot: unknown) => {
      const nodes = defined.get(name);
      if (!nodes) throw new Error(`no template ${name}`);
      return write(nodes, { dot, top: dot, variables: {} });
    },
    nindent: (by: number, text: string) =>
      `\n${" ".repeat(by)}${text.replaceAll("\n", `\n${" ".repeat(by)}`)}`,
    toYaml: (value: unknown) => stringify(value, { sortMapEntries: true }).trimEnd(),
    quote: (value: unknown) => (value === undefined ? "" : JSON.stringify(shown(value))),
    default: (other: unknown, value: unknown) => (isFull(value) ? value : other),
    printf: (form: string, ...args: unknown[]) => form.replaceAll("%s", () => shown(args.shift())),
    eq: (a: unknown, b: unknown) => a === b,
    not: (value: unknown) => !isFull(value),
    regexMatch: (pattern: string, text: string) =>
      new RegExp(pattern.replace(/^\(\?m\)/, ""), "m").test(text),
    dict: (...pairs: unknown[]) =>
      Object.fromEntries(
        pairs.flatMap((key, at) => (at % 2 === 0 ? [[key as string, pairs[at + 1]]] : [])),
      ),
    // The first of them that has a key wins
    merge: (...maps: Values[]) => Object.assign({}, ...maps.toReversed()),
    replace: (old: string, other: string, text: string) => text.replaceAll(old, () => other),
    fail: (sentence: string) => {
      throw new Error(sentence);
    },
    sha256sum: (text: string) => createHash("sha256").update(text).digest("hex"),
  };
  function functionNamed(name: string): (...args: unknown[]) => unknown {
    const found = functions[name];
    if (!found) throw new Error(`${name}: this renderer doesn't know that function`);
    return found as (...args: unknown[]) => unknown;
  }

  return new Map(
    parsed
      .filter(({ name }) => !name.startsWith("_"))
      .map(({ name, nodes }) => [name, write(nodes, { dot: given, top: given, variables: {} })]),
  );
}

export type Values = Record<string, unknown>;
interface Block {
  kind: "value" | "if" | "with" | "range";
  words: string;
  inside: Node[];
  otherwise: Node[];
}
type Node = string | Block;
interface Scope {
  dot: unknown;
  top: unknown;
  variables: Values;
  outer?: Scope;
}

const inner = (outer: Scope, dot: unknown, variables: Values = {}): Scope => ({
  dot,
  top: outer.top,
  variables,
  outer,
});

function holderOf(scope: Scope, name: string): Values {
  if (name in scope.variables) return scope.variables;
  if (!scope.outer) throw new Error(`${name} is not declared`);
  return holderOf(scope.outer, name);
}

/** These values over those of the chart. */
export function merged(base: Values, over: Values): Values {
  const isMap = (value: unknown): value is Values =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  const entries = Object.entries(over).map(([name, value]) => {
    const below = base[name];
    return [name, isMap(below) && isMap(value) ? merged(below, value) : value] as const;
  });
  // As in Helm, null takes a value away.
  return Object.fromEntries(
    Object.entries({ ...base, ...Object.fromEntries(entries) }).filter(([, one]) => one !== null),
  );
}

const isFull = (value: unknown): boolean =>
  typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);

function shown(value: unknown): string {
  if (!["string", "number", "boolean"].includes(typeof value))
    throw new Error(`${JSON.stringify(value)} has no text`);
  return String(value);
}

type Token = string | { words: string };

/** Texts and actions; `{{-` and `-}}` take the white space beside them. */
function tokensOf(text: string): Token[] {
  return text.split(/(?=\{\{)|(?<=\}\})/).flatMap((part, at, parts): Token[] => {
    const action = /^\{\{(?:- )?([^]*?)(?: -)?\}\}$/.exec(part);
    if (action) {
      const words = (action[1] ?? "").replace(/^-/, "").trim();
      return words.startsWith("/*") ? [] : [{ words }];
    }
    let left = part;
    if ((parts[at - 1] ?? "").endsWith(" -}}")) left = left.trimStart();
    if ((parts[at + 1] ?? "").startsWith("{{- ")) left = left.trimEnd();
    return left === "" ? [] : [left];
  });
}

/** Up to the `end` or `else` that closes these, which stays. */
function nodesOf(tokens: Token[], defined: Map<string, Node[]>): Node[] {
  const nodes: Node[] = [];
  for (let token = tokens[0]; token !== undefined; token = tokens[0]) {
    if (typeof token !== "string" && /^(end|else)\b/.test(token.words)) return nodes;
    tokens.shift();
    if (typeof token === "string") {
      nodes.push(token);
      continue;
    }
    const [, kind = "value", words = token.words] =
      /^(if|with|range|define) ([^]+)$/.exec(token.words) ?? [];
    if (kind === "value") nodes.push({ kind, words, inside: [], otherwise: [] });
    else if (kind === "define") {
      defined.set(JSON.parse(words) as string, nodesOf(tokens, defined));
      expectEnd(tokens);
    } else nodes.push(blockOf(kind as "if", words, tokens, defined));
  }
  return nodes;
}

function blockOf(
  kind: "if" | "with" | "range",
  words: string,
  tokens: Token[],
  defined: Map<string, Node[]>,
): Block {
  const inside = nodesOf(tokens, defined);
  const [next] = tokens;
  const said = typeof next === "object" ? next.words : "";
  const [, condition] = /^else if ([^]+)$/.exec(said) ?? [];
  if (condition !== undefined) {
    tokens.shift();
    return { kind, words, inside, otherwise: [blockOf("if", condition, tokens, defined)] };
  }
  if (said === "else") tokens.shift();
  const otherwise = said === "else" ? nodesOf(tokens, defined) : [];
  expectEnd(tokens);
  return { kind, words, inside, otherwise };
}

function expectEnd(tokens: Token[]): void {
  const token = tokens.shift();
  if (typeof token !== "object" || token.words !== "end") throw new Error("an end is missing");
}

function wordsOf(text: string): string[] {
  const words = text.match(/"(?:[^"\\]|\\.)*"|[()|]|[^\s()|"]+/g) ?? [];
  return [...words];
}

// For .ci/manifests: render-chart.ts <chart> <file of values>
if (import.meta.main) {
  const [folder = "", file = ""] = process.argv.slice(2);
  const values = JSON.parse(readFileSync(file, "utf8")) as Values;
  const rendered = renderChart(folder, { release: "gatehouse", namespace: "gatehouse", values });
  for (const [name, text] of rendered)
    if (name.endsWith(".yaml")) process.stdout.write(`---\n${text}\n`);
}
