/**
 * Reads the standard Markdown of a `markdown` block, as far as a chat needs it: headings, lists, quotes, fences, tables,
 * rules and the usual styles. No HTML: it is text like everything else.
 */
export type Span =
  | { kind: "text"; text: string }
  | { kind: "bold" | "italic" | "strike"; inner: Span[] }
  | { kind: "code"; text: string }
  | { kind: "link"; url: string; inner: Span[] };

export type Part =
  | { kind: "heading"; level: number; inner: Span[] }
  | { kind: "paragraph" | "quote"; inner: Span[] }
  | { kind: "list"; ordered: boolean; items: Span[][] }
  | { kind: "fence"; text: string }
  | { kind: "table"; rows: Span[][][] }
  | { kind: "rule" };

const item = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;

export function parseMarkdown(text: string): Part[] {
  const parts: Part[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length;) {
    const [part, used] = readPart(lines, at);
    if (part) parts.push(part);
    at += Math.max(1, used);
  }
  return parts;
}

/** One part and how many lines it took. */
function readPart(lines: readonly string[], at: number): [Part | undefined, number] {
  const line = lines[at] ?? "";
  const rest = lines.slice(at);
  if (line.trim() === "") return [undefined, 1];
  if (/^\s*```/.test(line)) {
    const end = rest.findIndex((other, index) => index > 0 && /^\s*```\s*$/.test(other));
    const inner = rest.slice(1, end < 0 ? undefined : end);
    return [{ kind: "fence", text: inner.join("\n") }, inner.length + 2];
  }
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading)
    return [
      { kind: "heading", level: heading[1]?.length ?? 1, inner: parseSpans(heading[2] ?? "") },
      1,
    ];
  if (/^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/.test(line)) return [{ kind: "rule" }, 1];
  if (line.startsWith(">")) {
    const quoted = taken(rest, (other) => other.startsWith(">"));
    return [
      {
        kind: "quote",
        inner: parseSpans(quoted.map((other) => other.replace(/^> ?/, "")).join("\n")),
      },
      quoted.length,
    ];
  }
  if (item.test(line)) {
    const items = taken(rest, (other) => item.test(other));
    return [
      {
        kind: "list",
        ordered: item.exec(line)?.[1] !== undefined,
        items: items.map((other) => parseSpans(item.exec(other)?.[2] ?? "")),
      },
      items.length,
    ];
  }
  if (line.includes("|") && /^\s*\|?[\s:|-]*-[\s:|-]*$/.test(rest[1] ?? "")) {
    const rows = taken(rest, (other) => other.includes("|"));
    return [
      { kind: "table", rows: rows.filter((_, index) => index !== 1).map(cellsOf) },
      rows.length,
    ];
  }
  const words = [
    line,
    ...taken(
      rest.slice(1),
      (other) => other.trim() !== "" && !/^(?:#|>|\s*```)/.test(other) && !item.test(other),
    ),
  ];
  return [{ kind: "paragraph", inner: parseSpans(words.join("\n")) }, words.length];
}

function taken(lines: readonly string[], fits: (line: string) => boolean): string[] {
  const end = lines.findIndex((line) => !fits(line));
  return lines.slice(0, end < 0 ? undefined : end);
}

function cellsOf(row: string): Span[][] {
  return row
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => parseSpans(cell.trim()));
}

const span =
  /`([^`]+)`|\[([^\]]*)\]\(([^()\s]+)\)|\*\*(.+?)\*\*|__(.+?)__|~~(.+?)~~|\*([^*\s](?:[^*]*[^*\s])?)\*|(?<![\p{L}\p{N}])_([^_\s](?:[^_]*[^_\s])?)_(?![\p{L}\p{N}])|\\([\\`*_~[\]()#>|-])/gu;

export function parseSpans(text: string): Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const match of text.matchAll(span)) {
    if (match.index > at) spans.push({ kind: "text", text: text.slice(at, match.index) });
    at = match.index + match[0].length;
    const [, code, words, url, bold, alsoBold, strike, italic, alsoItalic, escaped] = match;
    if (code !== undefined) spans.push({ kind: "code", text: code });
    else if (url !== undefined) spans.push({ kind: "link", url, inner: parseSpans(words ?? "") });
    else if (bold !== undefined || alsoBold !== undefined)
      spans.push({ kind: "bold", inner: parseSpans(bold ?? alsoBold ?? "") });
    else if (strike !== undefined) spans.push({ kind: "strike", inner: parseSpans(strike) });
    else if (escaped !== undefined) spans.push({ kind: "text", text: escaped });
    else spans.push({ kind: "italic", inner: parseSpans(italic ?? alsoItalic ?? "") });
  }
  if (at < text.length) spans.push({ kind: "text", text: text.slice(at) });
  return spans;
}
