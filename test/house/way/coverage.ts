import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../sources.ts";

interface Range {
  startOffset: number;
  endOffset: number;
  count: number;
}

interface Script {
  url: string;
  functions: readonly { functionName: string; ranges: readonly Range[] }[];
}

/** Of one file of `src`: which characters ran, and which function each belongs to (its first character). */
interface Ran {
  characters: Uint8Array;
  functionAt: Int32Array;
}

/** Reads what V8 wrote into this folder, each time that it did: a file of `src` → what of it ran. */
export function ranIn(folder: string): Map<string, Ran>[] {
  const times = readdirSync(folder)
    .map((name) => /^coverage-\d+-(\d+)-(\d+)\.json$/.exec(name))
    .filter((found) => found !== null)
    .toSorted((a, b) => Number(a[2]) - Number(b[2]));
  return times.map(([name]) => {
    const { result } = JSON.parse(readFileSync(path.join(folder, name), "utf8")) as {
      result: readonly Script[];
    };
    return new Map(
      result.flatMap((script) => {
        const file = fileOf(script.url);
        return file === undefined ? [] : [[file, paint(script)]];
      }),
    );
  });
}

function fileOf(url: string): string | undefined {
  const prefix = new URL(`file://${root}src/`).href;
  return url.startsWith(prefix) ? `src/${url.slice(prefix.length)}` : undefined;
}

/** Outer ranges come before inner ones, which say more. */
function paint({ functions }: Script): Ran {
  const length = Math.max(0, ...functions.flatMap(({ ranges }) => ranges[0]?.endOffset ?? 0));
  const [characters, functionAt] = [new Uint8Array(length), new Int32Array(length).fill(-1)];
  const outerFirst = functions.toSorted(
    (a, b) =>
      (a.ranges[0]?.startOffset ?? 0) - (b.ranges[0]?.startOffset ?? 0) ||
      (b.ranges[0]?.endOffset ?? 0) - (a.ranges[0]?.endOffset ?? 0),
  );
  for (const { ranges } of outerFirst) {
    const [whole] = ranges;
    if (whole) functionAt.fill(whole.startOffset, whole.startOffset, whole.endOffset);
    for (const { startOffset, endOffset, count } of ranges)
      characters.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  }
  return { characters, functionAt };
}

/** Files and functions with code that ran here and not there. */
export function beside(here: Map<string, Ran>, there: Map<string, Ran>) {
  const files: string[] = [];
  let functions = 0;
  for (const [file, { characters, functionAt }] of here) {
    const quiet = there.get(file)?.characters;
    const found = new Set<number>();
    for (let at = 0; at < characters.length; at += 1)
      if (characters[at] === 1 && quiet?.[at] !== 1) found.add(functionAt[at] ?? -1);
    if (found.size === 0) continue;
    files.push(file);
    functions += found.size;
  }
  return { files: files.toSorted(), functions };
}
