import { codeOf } from "../errors.ts";
import { readRegularSync } from "../regular-file.ts";

/** A text, or a function that returns its current value. */
export type Live = string | (() => string);

export function currentValue(live: Live): string {
  return typeof live === "function" ? live() : live;
}

/**
 * The result of looking at the file: its new text, or the reason why the former text is kept. `why`
 * never contains a secret; `text` may.
 */
export type FileNews = { kind: "changed"; text: string } | { kind: "kept"; why: string };

const lookEveryMs = 2_000;
/** A token has about a hundred bytes; a list of CAs is the longest text that is read like this. */
const mostBytes = 1024 * 1024;

/**
 * The text of a file that may be replaced while the process runs, as Kubernetes replaces a mounted
 * secret. It is compared by content when it is used, because a file watch doesn't notice a swapped
 * symbolic link. When the file can't be read or its content can't be right, the former text is
 * kept.
 */
export class ChangingFile {
  /** Called once for each change, and once for each reason to keep the former text. */
  onNews: (news: FileNews) => void = () => undefined;
  /** Checks a new text; returns the problem in words, or undefined. */
  problemOf: (text: string) => string | undefined = () => undefined;
  readonly #path: string;
  #text: string;
  #lookedAt = performance.now();
  #told = "";

  /** Throws whatever `readRegularSync` throws. */
  constructor(path: string) {
    this.#path = path;
    this.#text = this.#readText();
  }

  /** Absolute path. */
  get path(): string {
    return this.#path;
  }

  /** The text as it was at most two seconds ago, without surrounding white space. */
  get text(): string {
    if (performance.now() - this.#lookedAt >= lookEveryMs) this.reread();
    return this.#text;
  }

  /** Looks at the file now. Returns true when it has a new text. */
  reread(): boolean {
    this.#lookedAt = performance.now();
    const news = this.#look();
    const why = news?.kind === "kept" ? news.why : "";
    const isTold = why !== "" && why === this.#told;
    this.#told = why;
    if (news?.kind === "changed") this.#text = news.text;
    if (news && !isTold) this.onNews(news);
    return news?.kind === "changed";
  }

  #look(): FileNews | undefined {
    try {
      const text = this.#readText();
      if (text === this.#text) return undefined;
      const why = text === "" ? "it is empty" : this.problemOf(text);
      return why === undefined ? { kind: "changed", text } : { kind: "kept", why };
    } catch (error) {
      return { kind: "kept", why: `it can't be read (${codeOf(error)})` };
    }
  }

  #readText(): string {
    return readRegularSync(this.#path, mostBytes).toString("utf8").trim();
  }
}
