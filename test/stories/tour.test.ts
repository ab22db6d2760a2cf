import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { compileCache } from "../support/compile-cache.ts";

describe("npm run tour", () => {
  it("plays the on-call story to its end, with a Redis of its own", async () => {
    const tour = spawn(process.execPath, ["demo/tour/main.ts"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...compileCache },
    });
    let said = "";
    tour.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    tour.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    // One that hangs is ended, so that what it said last is shown
    const patience = setTimeout(() => tour.kill(), 220_000);
    const [code] = (await once(tour, "exit")) as [number | null];
    clearTimeout(patience);
    const stopped = said.indexOf("The tour stopped");
    expect(said.slice(stopped < 0 ? -2000 : stopped - 1000).slice(0, 3000)).toContain(
      "Every step held",
    );
    expect(code).toBe(0);
  }, 230_000);
});
