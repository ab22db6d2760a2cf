import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
} from "yaml";

/** A problem of a document, with the offset of its place in the text. */
export interface Problem {
  offset: number | undefined;
  sentence: string;
}

/** A text as YAML means it, which may not be what the person who wrote it means. Never throws. */
export function readYaml(text: string) {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  // An unknown tag is a warning only, and its value isn't read as it says
  const misread = [...document.errors, ...document.warnings].map((error) => ({
    offset: error.pos[0],
    sentence: yamlWords(error),
  }));
  const unsaid = misread.length > 0 ? misread : unsaidIn(document);
  const value = misread.length > 0 ? undefined : valueOf(document);
  const bomb = { offset: 0, sentence: "the file has too many aliases" };
  return {
    document,
    /** Undefined where it can't be told; `problems` say why. */
    value,
    /** 1 for the first. */
    lineAt: (offset: number | undefined) => lines.linePos(offset ?? 0).line,
    /** Why it isn't what it seems to be. */
    problems: value === undefined && unsaid.length === 0 ? [bomb] : unsaid,
  };
}

function valueOf(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    return undefined;
  }
}

function yamlWords({ code, message }: YAMLError): string {
  if (code === "BAD_ALIAS") return `${message}; put a * in quotes ("*")`;
  return code === "MULTIPLE_DOCS" ? "begins a second document: a policy is one" : message;
}

/**
 * Keys and items that a comment or a slip has emptied, and aliases that name nothing: none of them may count as absent,
 * because the default of what is absent may let in more than the line that was lost.
 */
function unsaidIn(document: Document): readonly Problem[] {
  const found: Problem[] = [];
  const anchors = new Map<string, Node>();
  const walk = (node: unknown, path: readonly PropertyKey[], above: readonly unknown[]): void => {
    const say = (words: string) =>
      found.push({
        offset: place(path, document, true),
        sentence: `${pathText(path)} ${words}`,
      });
    if (isAlias(node)) {
      const { source } = node;
      const named = anchors.get(source);
      if (named === undefined)
        say(`is the alias *${source}, and no anchor &${source} is before it; put a glob in quotes`);
      else if (above.includes(named)) say(`is the alias *${source}, which contains it`);
      return;
    }
    if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        if (isScalar(key) && key.anchor !== undefined) anchors.set(key.anchor, key);
        walk(value, [...path, keyText(key)], [...above, node]);
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries())
        walk(item, [...path, index], [...above, node]);
    } else if (!isScalar(node) || node.value === null)
      say(path.length === 0 ? emptyFile : "is empty: give it a value, or remove it");
  };
  walk(document.contents, [], []);
  return found;
}

const emptyFile =
  "is empty: for a policy by which everyone can view and no one can change anything, write {}";

/** `approvals[1].targets[2]`: counted from 1, as people do. */
export function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the file";
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part + 1}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** The offset of the value (or its key); for something missing, of its parent. */
export function place(
  path: readonly PropertyKey[],
  document: Document,
  wantsKey: boolean,
): number | undefined {
  let node: unknown = document.contents;
  let offset = start(node);
  for (const [index, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item.key) === String(part));
      if (pair === undefined) break;
      const isKey = (wantsKey && index === path.length - 1) || start(pair.value) === undefined;
      offset = start(isKey ? pair.key : pair.value) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      offset = start(node) ?? offset;
    } else break;
  }
  return offset;
}

function start(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}

function keyText(key: unknown): string {
  return String(typeof key === "object" && key !== null && "value" in key ? key.value : key);
}
