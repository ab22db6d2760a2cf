import { codeOf } from "../errors.ts";
import { readRegularSync } from "../regular-file.ts";

/** A text, or what returns it as it is at that moment. */
export type Live = string | (() => string);

export function currentValue(live: Live): string {
  return typeof live === "function" ? live() : live;
}

/** What a look at the file brought: its new text, or why the former one still counts. Never a secret but in `text`. */
export type FileNews = { is: "changed"; text: string } | { is: "kept"; why: string };

const lookEveryMs = 2_000;
/** A token has a hundred; a list of CAs the most. */
const mostBytes = 1024 * 1024;

/**
 * The text of a file that may be replaced while the process runs, as Kubernetes replaces a mounted secret. It is compared by
 * content when it is used, because a watch sees nothing of a swapped link. What can't be read, or can't be right, leaves the
 * former text.
 */
export class ChangingFile {
  /** Told once for each change, and once for each reason to keep the former text. */
  onNews: (news: FileNews) => void = () => undefined;
  /** What the text must look like; a problem in words, or undefined. */
  problemOf: (text: string) => string | undefined = () => undefined;
  readonly #path: string;
  #text: string;
  #lookedAt = performance.now();
  #told = "";

  /** Throws what `readRegularSync` throws. */
  constructor(path: string) {
    this.#path = path;
    this.#text = this.#readText();
  }

  /** Absolute. */
  get path(): string {
    return this.#path;
  }

  /** As it was at most two seconds ago, without white space around it. */
  get text(): string {
    if (performance.now() - this.#lookedAt >= lookEveryMs) this.reread();
    return this.#text;
  }

  /** Looks at it now. True when there is a new text. */
  reread(): boolean {
    this.#lookedAt = performance.now();
    const news = this.#look();
    const why = news?.is === "kept" ? news.why : "";
    const isTold = why !== "" && why === this.#told;
    this.#told = why;
    if (news?.is === "changed") this.#text = news.text;
    if (news && !isTold) this.onNews(news);
    return news?.is === "changed";
  }

  #look(): FileNews | undefined {
    try {
      const text = this.#readText();
      if (text === this.#text) return undefined;
      const why = text === "" ? "it is empty" : this.problemOf(text);
      return why === undefined ? { is: "changed", text } : { is: "kept", why };
    } catch (error) {
      return { is: "kept", why: `it can't be read (${codeOf(error)})` };
    }
  }

  #readText(): string {
    return readRegularSync(this.#path, mostBytes).toString("utf8").trim();
  }
}
