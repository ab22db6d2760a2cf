// npm run check:certain: the light tests on machines that are slow. They run while one busy loop for each processor runs beside them,
// and once more on one processor. Both must be green. Prints for each run how long it took and how busy the machine was.
//   -- --times 3         as often
//   -- --changed HEAD~3  only files that reach what has changed since then; any option of vitest works
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, loadavg } from "node:os";
import { findProgram } from "../sandbox/find-program.ts";

const words = process.argv.slice(2);
const at = words.indexOf("--times");
const times = at < 0 ? 1 : Number(words.splice(at, 2)[1]);

const processors = availableParallelism();
const tests = [process.execPath, "test/run.ts", "light", "--reporter=dot", ...words];

/** Runs the tests with this command; resolves with whether they passed. Prints what they said only if they didn't. */
async function passes(title: string, [program = "", ...args]: readonly string[]) {
  const beganAt = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  const seconds = Math.round((performance.now() - beganAt) / 1_000);
  const load = loadavg()
    .slice(0, 2)
    .map((value) => value.toFixed(1));
  const last = output.trimEnd().split("\n").at(-1);
  // What has changed may be reached by no light test.
  const isNone = words.includes("--changed") && last === "0 passed, 0 failed";
  if (code !== 0 && !isNone) process.stdout.write(`${output}\n`);
  process.stdout.write(
    `${title}: ${last}, ${seconds} s, load ${load.join(" and ")} (1 and 5 min)\n`,
  );
  return code === 0 || isNone;
}

async function passesBesideLoops(): Promise<boolean> {
  const loops = Array.from({ length: processors }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
  try {
    return await passes(`beside ${processors} busy loops on ${processors} processors`, tests);
  } finally {
    for (const loop of loops) loop.kill("SIGKILL");
  }
}

const taskset = findProgram(["taskset"]);
let isCertain = true;
for (let run = 0; run < times; run++) {
  isCertain = (await passesBesideLoops()) && isCertain;
  // Only Linux can keep a program to one processor.
  if (taskset !== undefined)
    isCertain = (await passes("on one processor", [taskset, "-c", "0", ...tests])) && isCertain;
}
process.exitCode = isCertain ? 0 : 1;
