import { describe, expect, it } from "vitest";
import { runtimeProblem } from "../../src/operate/runtime.mjs";

describe("the version of Node.js", () => {
  it.each(["v26.0.0", "26.10.0", "v27.1.0"])("is fine from 26 on: %s", (version) => {
    expect(runtimeProblem(version, "/usr/bin/node")).toBeUndefined();
  });

  it.each(["v24.21.0", "v25.9.9", "v9.0.0", "nonsense"])(
    "is named together with the one that is needed: %s",
    (version) => {
      expect(runtimeProblem(version, "/usr/bin/node")).toContain(
        `Gatehouse needs Node.js 26 or newer, and this is ${version} (/usr/bin/node)`,
      );
    },
  );
});
