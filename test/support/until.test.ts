import { describe, expect, it } from "vitest";
import { until, watch } from "./until.ts";

const soon = { stillMs: 30, longestMs: 60_000 };
const nothing = () => "";

describe("a wait", () => {
  it("resolves with the first value that is there, and throws nothing on the way", async () => {
    let looks = 0;
    const look = () => {
      looks += 1;
      if (looks === 1) throw new Error("not yet");
      return looks < 4 ? undefined : looks;
    };
    expect(await until(look)).toBe(4);
  });

  it("goes on until the value passes the matcher, or its opposite", async () => {
    let looks = 0;
    await until(() => (looks += 1)).toBe(3);
    await until(() => (looks += 1)).not.toBe(4);
    expect(looks).toBe(5);
  });

  it("names the fact, the value instead, and what Gatehouse logged last when nothing moves", async () => {
    const lines = Array.from({ length: 12 }, (_, n) => `line ${n}.\n`);
    const stop = watch({ lines });
    const failed = until(
      () => "RUNNING",
      () => "the worker is gone",
      soon,
    ).toBe("STOPPED");
    const message = await failed.then(nothing, (error: Error) => error.message);
    stop();
    expect(message).toMatch(
      /^Waited 0 s for \(\) => "RUNNING": expected 'RUNNING' to be 'STOPPED'/,
    );
    expect(message).toContain("the worker is gone");
    expect(message).toMatch(/The load was [\d.]+ on \d+ processors\./);
    expect(message).toContain("line 2.\n");
    expect(message).not.toContain("line 1.\n");
  });

  it("fails though something moves all the time, once it took too long", async () => {
    let looks = 0;
    const failed = until(() => (looks += 1), nothing, { stillMs: 60_000, longestMs: 30 });
    await expect(failed.toBe(0)).rejects.toThrow(/to be \+?0/);
  });
});
