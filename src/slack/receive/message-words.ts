import { typedOf } from "../../registry/invocation.ts";

/**
 * Stands for a code span while the text around it is read. Private-use characters occur in no
 * message.
 */
const [codeStart, codeEnd] = ["\uE000", "\uE001"];
const codeMark = new RegExp(`${codeStart}(\\d+)${codeEnd}`, "g");

/**
 * A pair of `*`, `_`, or `~` around words, as Slack's mrkdwn reads it: the first mark begins a
 * word, the second ends one. A `*` next to a dash, dot, or space belongs to a glob (`web-*`), and
 * one inside a word stays (`a_b`). Removing a pair never widens a target: `web` is one of the names
 * that `*web*` matches.
 */
const pair =
  /(?<![^\s([{:,;*_~\uE001])(\*{1,3}|_{1,3}|~{1,3})(?=[\p{L}\p{N}<"“'‘/@#*_~\uE000])(.{0,300}?[\p{L}\p{N}>"”'’.,:;!?)\]*_~\uE001])\1(?![^\s.,:;!?…)\]}*_~\uE000])/gu;

const greeting = /^(?:hey|hi|hello|ok|okay)\b(?:[\s,.!:]+gatehouse\b)?[\s,.!:]*/iu;
const question = /^(?:can|could|would|will)\s+(?:you|u|someone|somebody|anyone)\b[\s,]*/iu;
const polite = /^(?:please|pls|plz|kindly)\b[\s,]*/iu;
const thanks = /[\s,;.!?–—-]{1,5}(?:please|pls|plz|thanks|thank you|thx)[\s.,!?]*$/iu;
const punctuation = /^(?:[\s,:;.!?…]|[-–—](?=\s))+/u;
const onlyPolite = /^(?:[\s,;.!?–—-]|please|pls|plz|thanks|thank you|thx)*$/iu;
/** The end of a sentence. It must follow a letter or digit, because `web-?` is a glob. */
const after = /(?<=[\p{L}\p{N}"”'’)])[?.!…]+$/u;

/**
 * The words of a command in a message to Gatehouse: `hey @gatehouse, could you *restart web-2*?` →
 * `restart web-2`. What is before the mention counts only if nothing follows it. Code is taken as
 * it is written: people copy commands with their backticks, and write in code what is meant
 * exactly.
 */
export function wordsToUs(text: string, botUserId: string): string {
  const codes: string[] = [];
  const marked = text
    .replaceAll(/[\uE000\uE001]/g, "")
    .replaceAll(/`+([^`]+)`+/g, (_, code: string) => {
      codes.push(code);
      return `${codeStart}${codes.length - 1}${codeEnd}`;
    });
  const shown = withoutPairs(marked).replaceAll("`", "");
  const mention = /<@([A-Z0-9]+)(?:\|[^>]*)?>/g;
  const mentions = [...shown.matchAll(mention)].filter(([, userId]) => userId === botUserId);
  const from = mentions[0]?.index ?? 0;
  const withoutUs = (part: string) =>
    part.replaceAll(mention, (whole, userId: string) => (userId === botUserId ? " " : whole));
  const [before, following] = [shown.slice(0, from), withoutUs(shown.slice(from))];
  return typedOf(
    (
      commandIn(following) ||
      commandIn(before) ||
      thanksIn(following) ||
      thanksIn(before) ||
      greetingIn(following) ||
      greetingIn(before)
    )
      .replaceAll(codeMark, (_, index: string) => codes[Number(index)] ?? "")
      .replaceAll(/\s+/g, " "),
  ).trim();
}

/** Removes pairs of marks, which may be nested: `*_web-2_*`. */
function withoutPairs(text: string): string {
  let shown = text;
  for (let depth = 0; depth < 4; depth += 1) shown = shown.replaceAll(pair, "$2");
  return shown;
}

/** The thanks alone, which are answered, too. */
const thanksIn = (sentence: string) => /\b(?:thanks|thank you|thx)\b/iu.exec(sentence)?.[0] ?? "";

/** The greeting alone: whoever says only that gets an answer, too. */
const greetingIn = (sentence: string) =>
  (greeting.exec(sentence.trim().replace(punctuation, ""))?.[0] ?? "").split(/[\s,.!:]/)[0] ?? "";

/** The sentence without polite words and without the punctuation at its end. */
function commandIn(sentence: string): string {
  if (onlyPolite.test(sentence)) return "";
  let words = sentence.trim();
  for (const opening of [punctuation, greeting, polite, question, polite])
    words = words.replace(opening, "");
  return words.replace(after, "").replace(thanks, "").replace(after, "").trim();
}
