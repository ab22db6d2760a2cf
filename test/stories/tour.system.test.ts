import { describe, expect, it } from "vitest";
import { startNode } from "../support/start-program.ts";

describe("npm run tour", () => {
  it("plays the on-call story to its end, with a Redis of its own", async () => {
    await using tour = startNode(["demo/tour/main.ts"], process.env);
    const code = await tour.ended;
    const said = tour.output();
    const stopped = said.indexOf("The tour stopped");
    expect(said.slice(stopped < 0 ? -2000 : stopped - 1000).slice(0, 3000)).toContain(
      "Every step held",
    );
    expect(code).toBe(0);
  });
});
