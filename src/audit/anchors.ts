import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { isHash } from "./chain.ts";

/** A head of the chain kept outside Redis: in a channel, in the log, on this process's disk. The chain must still hold it. */
export interface Anchor {
  seq: number;
  hash: string;
  /** Redis time when it was anchored, ms. */
  at: number;
}

/** The anchors on this process's disk: `audit-anchors.jsonl`, one per line, only ever appended to. */
export interface Anchors {
  readonly all: readonly Anchor[];
  readonly last: Anchor | undefined;
  /** Throws what the file system says. */
  add(anchor: Anchor): void;
}

/** `chain` keeps installations that share a folder apart: the namespace. A line torn by a crash is skipped. */
export function openAnchors(folder: string, chain: string): Anchors {
  const file = path.join(folder, "audit-anchors.jsonl");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const all = text
    .split("\n")
    .map((line) => parseAnchor(line, chain))
    .filter((anchor) => anchor !== undefined);
  let isTorn = text !== "" && !text.endsWith("\n");

  return {
    all,
    get last() {
      return all.at(-1);
    },
    add(anchor) {
      mkdirSync(folder, { recursive: true });
      const line = JSON.stringify({ chain, ...anchor });
      // opened for each line: other processes may share the file
      appendFileSync(file, `${isTorn ? "\n" : ""}${line}\n`, { flush: true });
      isTorn = false;
      all.push(anchor);
    },
  };
}

const anchorLine = z.object({
  chain: z.string(),
  seq: z.int(),
  hash: z.string().refine(isHash),
  at: z.number(),
});

function parseAnchor(line: string, chain: string): Anchor | undefined {
  try {
    const parsed = anchorLine.safeParse(JSON.parse(line));
    if (!parsed.success || parsed.data.chain !== chain) return undefined;
    const { seq, hash, at } = parsed.data;
    return { seq, hash, at };
  } catch {
    return undefined;
  }
}

/** `120:9f86…` as it is posted to the channel; undefined when it isn't one. */
export function readAnchor(text: string): Anchor | undefined {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? [];
  return seq && hash ? { seq: Number(seq), hash, at: 0 } : undefined;
}
