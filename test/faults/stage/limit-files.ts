import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findProgram } from "../../../sandbox/find-program.ts";

/** What the machine lacks for it, if anything. */
export function cannotLimitFiles(): string | undefined {
  return findProgram(["prlimit"]) === undefined
    ? "needs prlimit, to let a write fail as on a full disk"
    : undefined;
}

/** No file of this process may get longer than this: a write then fails as on a full disk, after taking what still fits. */
export async function limitFiles(pid: number, bytes: number | "unlimited"): Promise<void> {
  await promisify(execFile)("prlimit", ["--pid", String(pid), `--fsize=${bytes}:unlimited`]);
}
