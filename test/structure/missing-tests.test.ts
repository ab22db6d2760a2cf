import { describe, expect, it } from "vitest";
import { missingTests } from "./missing-tests.ts";
import { readSources } from "./sources.ts";

describe("tests", () => {
  it("are there for every command, every folder and every file of src itself", () => {
    expect(missingTests(readSources(["src", "test"]))).toEqual([]);
  });

  it("are named when they are forgotten", () => {
    const planted = new Map([
      ["src/commands/vm/restart.ts", ""],
      ["src/commands/vm/explode.ts", ""],
      ["src/commands/vm/show.ts", ""],
      ["src/weather/rain.ts", ""],
      ["src/clock.ts", ""],
      ["src/log/log.ts", 'import { a } from "./scrub.ts"'],
      ["src/log/scrub.ts", ""],
      ["test/log/log.test.ts", 'import { b } from "../src/log.ts"'],
      [
        "test/commands/some.test.ts",
        'import { show } from "../../src/commands/vm/show.ts"; it("vm restart", f)',
      ],
      ["test/structure/x.test.ts", 'import { c } from "../../src/clock.ts"'],
    ]);
    expect(missingTests(planted)).toEqual([
      "src/commands/vm/explode.ts has no test",
      "src/weather/ has no test in test/weather/",
      "src/clock.ts is reached by no test in test/",
    ]);
  });
});
