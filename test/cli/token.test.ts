import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { runToken } from "../../src/cli/token.ts";

describe("token", () => {
  it("is new each time, with the hash that lets it in", async () => {
    const made: string[] = [];
    for (const _ of [1, 2])
      expect(await runToken([], { write: (text) => void made.push(text) })).toBe(0);
    expect(made[0]).not.toBe(made[1]);
    const [, token = "", line] =
      /^token: (\S{43})\nin gatehouse.yml: (\S+)\n$/.exec(made[0] ?? "") ?? [];
    expect(line).toBe(`"sha256:${hash("sha256", token)}"`);
  });
});
