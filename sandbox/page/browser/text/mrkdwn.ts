/**
 * Reads Slack's mrkdwn (https://docs.slack.dev/messaging/formatting-message-text) into a tree. Only what is named here
 * means something; everything else is text. A pure function: what to draw for a node is `draw-text.ts`'s business.
 */
export type Inline =
  | { kind: "text"; text: string }
  | { kind: "bold" | "italic" | "strike"; inner: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "link"; url: string; inner: Inline[] }
  | { kind: "person" | "channel" | "group"; id: string; label: string }
  | { kind: "everyone"; word: string }
  | { kind: "date"; seconds: number; format: string; url: string; fallback: string }
  | { kind: "emoji"; name: string }
  | { kind: "break" };

export type Paragraph =
  | { kind: "text"; inner: Inline[] }
  | { kind: "quote"; inner: Inline[] }
  | { kind: "pre"; text: string };

export function parseMrkdwn(text: string): Paragraph[] {
  const pieces = text.split("```");
  const last = pieces.length - 1;
  return pieces.flatMap((piece, index): Paragraph[] => {
    const fenced = index % 2 === 1;
    // An opening fence without its end is only three backticks.
    if (fenced && index === last) return paragraphs(`\`\`\`${piece}`);
    if (fenced)
      return [{ kind: "pre", text: decode(withoutControls(piece)).replace(/^\n|\n$/g, "") }];
    // The line a fence stands on is no line of the words around it.
    const from = index > 0 && piece.startsWith("\n") ? 1 : 0;
    const to = index < last && piece.endsWith("\n") ? -1 : undefined;
    return paragraphs(piece.slice(from, to));
  });
}

function paragraphs(text: string): Paragraph[] {
  const found: Paragraph[] = [];
  let run: { quoted: boolean; lines: string[] } | undefined;
  const finish = () => {
    if (!run) return;
    const joined = run.lines.join("\n");
    if (run.quoted || joined.trim() !== "")
      found.push({ kind: run.quoted ? "quote" : "text", inner: parseInline(joined) });
    run = undefined;
  };
  for (const line of text.split("\n")) {
    const quote = /^(?:&gt;|>) ?/.exec(line);
    if (run?.quoted !== (quote !== null)) finish();
    run ??= { quoted: quote !== null, lines: [] };
    run.lines.push(quote ? line.slice(quote[0].length) : line);
  }
  finish();
  return found;
}

/** One of these, wherever it comes first, ends a run of plain text. */
const token = /`([^`\n]+)`|<([^<>\n]+)>|:([a-z0-9_+-]+):|([*_~])|\n/g;

function parseInline(text: string): Inline[] {
  const found: Inline[] = [];
  let at = 0;
  const plain = (until: number) => {
    if (until > at) found.push({ kind: "text", text: decode(text.slice(at, until)) });
  };
  token.lastIndex = 0;
  for (let match = next(text, 0); match; match = next(text, at)) {
    const [whole, code, control, emoji, mark] = match;
    const styled = mark === undefined ? undefined : styledFrom(text, match.index, mark);
    if (mark !== undefined && !styled) {
      plain(match.index + 1);
      at = match.index + 1;
      continue;
    }
    plain(match.index);
    at = match.index + whole.length;
    if (code !== undefined) found.push({ kind: "code", text: decode(withoutControls(code)) });
    else if (control !== undefined) found.push(controlled(control));
    else if (emoji !== undefined) found.push({ kind: "emoji", name: emoji });
    else if (styled) {
      found.push(styled.node);
      at = styled.end;
    } else found.push({ kind: "break" });
  }
  plain(text.length);
  return found;
}

function next(text: string, from: number): RegExpExecArray | null {
  token.lastIndex = from;
  return token.exec(text);
}

const styles: Record<string, "bold" | "italic" | "strike"> = {
  "*": "bold",
  _: "italic",
  "~": "strike",
};

/** A styled run begins and ends at the edge of a word, on one line, and isn't empty. */
function styledFrom(
  text: string,
  start: number,
  mark: string,
): { node: Inline; end: number } | undefined {
  if (/[\p{L}\p{N}]/u.test(text[start - 1] ?? "") || /\s|^$/.test(text[start + 1] ?? ""))
    return undefined;
  for (let end = text.indexOf(mark, start + 1); end > 0; end = text.indexOf(mark, end + 1)) {
    const inner = text.slice(start + 1, end);
    if (inner.includes("\n")) return undefined;
    const insideCode = (inner.match(/`/g)?.length ?? 0) % 2 === 1;
    const insideControl = inner.lastIndexOf("<") > inner.lastIndexOf(">");
    if (
      insideCode ||
      insideControl ||
      /\s$|^$/.test(inner) ||
      /[\p{L}\p{N}]/u.test(text[end + 1] ?? "")
    )
      continue;
    const kind = styles[mark] ?? "bold";
    return { node: { kind, inner: parseInline(inner) }, end: end + 1 };
  }
  return undefined;
}

/** What stands between < and >: a mention, a date or a link. */
function controlled(control: string): Inline {
  const [head = "", ...rest] = control.split("|");
  const label = decode(rest.join("|"));
  if (/^@[UW][A-Z0-9]+$/.test(head)) return { kind: "person", id: head.slice(1), label };
  if (/^#[CGD][A-Z0-9]+$/.test(head)) return { kind: "channel", id: head.slice(1), label };
  const group = /^!subteam\^(S[A-Z0-9]+)$/.exec(head);
  if (group) return { kind: "group", id: group[1] ?? "", label };
  if (/^!(?:channel|here|everyone)$/.test(head)) return { kind: "everyone", word: head.slice(1) };
  const date = /^!date\^(\d+)\^([^^]+)(?:\^(.+))?$/.exec(head);
  if (date) {
    const [, seconds = "0", format = "", url = ""] = date;
    return {
      kind: "date",
      seconds: Number(seconds),
      format: decode(format),
      url: decode(url),
      fallback: label,
    };
  }
  if (/^(?:https?|mailto|tel):/i.test(head)) {
    const url = decode(head);
    return {
      kind: "link",
      url,
      inner: label === "" ? [{ kind: "text", text: url }] : [{ kind: "text", text: label }],
    };
  }
  return { kind: "text", text: decode(`<${control}>`) };
}

/** Inside code, Slack still shows a link as its words. */
function withoutControls(text: string): string {
  return text.replaceAll(
    /<((?:https?|mailto):[^|>]+)(?:\|([^>]*))?>/g,
    (_, url: string, label?: string) => label ?? url,
  );
}

/** The only three entities there are. */
export function decode(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
