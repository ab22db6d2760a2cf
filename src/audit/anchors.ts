import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { privateFile, privateFolder } from "../regular-file.ts";
import { parseJson } from "../text/parse-json.ts";
import { isHash } from "./seal.ts";

/** A head of the chain that is kept outside Redis. The chain must still contain it. */
export interface Anchor {
  seq: number;
  hash: string;
  /** Redis time when it was anchored (ms). */
  at: number;
}

/**
 * The anchors on this process's disk: `audit-anchors.jsonl`, with one anchor per line, to which
 * lines are only ever appended. `chain` is the namespace, which keeps installations apart that
 * share a folder. A line torn by a crash is skipped.
 */
export function openAnchors(folder: string, chain: string) {
  const file = path.join(folder, "audit-anchors.jsonl");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const lines = text
    .split("\n")
    .flatMap((line) => anchorLine.safeParse(parseJson(line)).data ?? []);
  const all = lines.flatMap(({ chain: anchoredChain, ...anchor }): Anchor[] =>
    anchoredChain === chain ? [anchor] : [],
  );
  let isTorn = text !== "" && !text.endsWith("\n");

  return {
    all,
    get last(): Anchor | undefined {
      return all.at(-1);
    },
    add(anchor: Anchor): void {
      mkdirSync(folder, privateFolder);
      const line = JSON.stringify({ chain, ...anchor });
      // The file is opened for each line, because other processes may share it.
      appendFileSync(file, `${isTorn ? "\n" : ""}${line}\n`, { ...privateFile, flush: true });
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
