import { readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { privateFile } from "../regular-file.ts";
import { parseJson } from "../text/parse-json.ts";

const shape = z.object({ text: z.string(), number: z.int() });

/** What this process last had for its policy: the file's text, and the number under which it was adopted. */
export type PolicyMemory = z.output<typeof shape>;

/**
 * In the directory of the process, so that a start can tell a file that was changed meanwhile from one that wasn't
 * replaced: only a change may supersede what the others have. Undefined without one.
 */
export function recallPolicy(dataDir: string): PolicyMemory | undefined {
  try {
    const read = shape.safeParse(parseJson(readFileSync(fileIn(dataDir), "utf8")));
    return read.success ? read.data : undefined;
  } catch {
    return undefined;
  }
}

/** What can't be written is as if it were never known: logged, no reason to stop. */
export function rememberPolicy(dataDir: string, memory: PolicyMemory, log: Log): void {
  const file = fileIn(dataDir);
  try {
    writeFileSync(`${file}.new`, JSON.stringify(memory), privateFile);
    renameSync(`${file}.new`, file);
  } catch (error) {
    log.warn("policy.not-remembered", { why: messageOf(error) });
  }
}

function fileIn(dataDir: string): string {
  return path.join(dataDir, "policy.json");
}
