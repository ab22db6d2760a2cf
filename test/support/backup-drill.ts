import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../structure/sources.ts";

const page = readFileSync(path.join(root, "docs/operate.md"), "utf8");

/** The scripts of the drill in docs/operate.md, by their names. */
export const drillScripts: ReadonlyMap<string, string> = new Map(
  [...page.matchAll(/^( *)```sh (\S.*)\n([^]*?)^ *```/gm)].map(([, , name = "", script = ""]) => [
    name,
    script,
  ]),
);

/** The words that record a loss, as docs/operate.md has them. */
export const gapWords = (/gatehouse\.mjs (audit record-gap .*)/.exec(page)?.[1] ?? "").split(" ");
