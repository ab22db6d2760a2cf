import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { Figure } from "./figure.ts";

/** From `npm run demo` to a page that answers, and what is left after Ctrl-C. */
export async function measureDemo(): Promise<readonly Figure[]> {
  const mark = `BENCH_MARK=${randomUUID()}`;
  const began = performance.now();
  const child = spawn("npm", ["run", "demo"], {
    env: { ...process.env, BENCH_MARK: mark.split("=")[1] },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true, // a process group of its own, which Ctrl-C reaches as a whole
  });
  const gone = once(child, "exit");
  let output = "";
  const { promise, resolve } = Promise.withResolvers<string>();
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    const [address] = /http:\/\/127\.0\.0\.1:\d+\//.exec(output) ?? [];
    if (address) resolve(address);
  });
  const address = await Promise.race([promise, gone.then(() => undefined)]);
  if (address === undefined) throw new Error(`the demo ended: ${output}`);
  const page = await fetch(address);
  const text = await page.text();
  const seconds = (performance.now() - began) / 1000;
  if (!page.ok || !text.includes("<html")) throw new Error(`the page answers ${page.status}`);
  const running = marked(mark).length;
  process.kill(-(child.pid ?? 0), "SIGINT");
  await gone;
  return [
    {
      name: "`npm run demo` to a usable page",
      value: seconds,
      unit: "s",
      bound: 5,
    },
    {
      name: `left of its ${running} processes after Ctrl-C`,
      value: marked(mark).length,
      unit: "",
      bound: 0,
    },
  ];
}

/** Processes that inherited this variable: the demo's own and all that it started. */
function marked(mark: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(mark);
    } catch {
      return false; // gone, or not ours
    }
  });
}
