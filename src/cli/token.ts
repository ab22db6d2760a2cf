import { hash, randomBytes } from "node:crypto";
import { runProgram } from "../text/terminal.ts";

export const tokenUsage = `usage: node gatehouse.mjs token
  prints a new token for a service, and its hash for \`tokens\` in gatehouse.yml`;

/** Prints a new token and its hash. */
export function runToken(
  words: readonly string[],
  { write, complain = write }: { write: (text: string) => void; complain?: typeof write },
): Promise<number> {
  return runProgram(words, { usage: tokenUsage, options: {}, failed: 1, complain }, () => {
    const token = randomBytes(32).toString("base64url");
    write(`token: ${token}\nin gatehouse.yml: "sha256:${hash("sha256", token)}"\n`);
    return 0;
  });
}
