import { execFile } from "node:child_process";
import { open } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { findProgram } from "../../../sandbox/find-program.ts";

/** The wall clock of programs that we start: what to start them with, and how to step it while they run. */
export interface SteppedClock {
  env: Record<string, string>;
  /** For Redis. */
  args: readonly string[];
  set(offMs: number): Promise<void>;
}

/** Builds the small library that is put before the server's own clock; a sentence where that can't be done here. */
export async function steppedClock(folder: string): Promise<SteppedClock | string> {
  if (process.platform !== "linux") return "a server's clock can be stepped on Linux alone";
  const compiler = findProgram(["cc", "gcc", "clang"]);
  if (compiler === undefined)
    return "stepping the clock of Redis takes a C compiler, and there is none here";
  const library = path.join(folder, "step-clock.so");
  const offFile = path.join(folder, "clock-off");
  try {
    const source = path.join(import.meta.dirname, "step-clock.c");
    await promisify(execFile)(compiler, ["-O1", "-shared", "-fPIC", "-o", library, source]);
  } catch (error) {
    return `stepping the clock of Redis takes a C compiler that works: ${String(error).slice(0, 200)}`;
  }
  const set = async (offMs: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(offMs));
    await using file = await open(offFile, "r+").catch(() => open(offFile, "w"));
    await file.write(bytes, 0, 8, 0);
  };
  await set(0);
  return {
    env: { LD_PRELOAD: library, CLOCK_OFF_FILE: offFile },
    // It waits until a time of this clock, and the kernel knows only its own: set back, it would wait for nothing and never rest
    args: ["--jemalloc-bg-thread", "no"],
    set,
  };
}
