import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { within } from "../src/deadline.ts";

const never = () => new Promise<never>(() => undefined);

describe("a deadline", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("lets results and errors through, and leaves no timer behind", async () => {
    await expect(within(1_000, Promise.resolve("here"), () => "late")).resolves.toBe("here");
    const failed = Promise.reject(new Error("broken"));
    await expect(within(1_000, failed, () => "late")).rejects.toThrow("broken");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("waits as long as it was told and no longer", async () => {
    const ended = vi.fn<(how: string) => void>();
    const waiting = within(1_000, never(), () => "late").then(ended);
    await vi.advanceTimersByTimeAsync(999);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledWith("late");
    await waiting;
  });

  it("ends with the reason when being late is an error, and only then says it", async () => {
    const late = vi.fn<() => never>(() => {
      throw new Error("no answer within 1 s");
    });
    await within(1_000, Promise.resolve(), late);
    const waiting = expect(within(1_000, never(), late)).rejects.toThrow("no answer within 1 s");
    await vi.advanceTimersByTimeAsync(1_000);
    await waiting;
    expect(late).toHaveBeenCalledOnce();
  });

  it("ignores what fails afterwards", async () => {
    const slow = Promise.withResolvers<never>();
    const waiting = within(10, slow.promise, () => "late");
    await vi.advanceTimersByTimeAsync(10);
    await expect(waiting).resolves.toBe("late");
    slow.reject(new Error("too late to matter")); // unhandled, it would fail this run
    await vi.advanceTimersByTimeAsync(0);
  });

  it("still takes what is there when it has passed already", async () => {
    await expect(within(-5, Promise.resolve("here"), () => "late")).resolves.toBe("here");
  });
});

describe("waiting for a deadline", () => {
  it("keeps no process alive", () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    void within(50, never(), () => undefined);
    const timer = timers.mock.results[0]?.value as NodeJS.Timeout | undefined;
    timers.mockRestore();
    expect(timer?.hasRef()).toBe(false);
  });
});
