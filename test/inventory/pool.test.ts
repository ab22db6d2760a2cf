import { describe, expect, it } from "vitest";
import { createPool } from "../../src/inventory/refresh.ts";

const never = () => false;

/** Work that goes on when it is told to. */
function handWork() {
  const started: number[] = [];
  const go = new Map<number, { leave: () => void; end: () => void; fail: () => void }>();
  const work = (item: number, leave: () => void) => {
    started.push(item);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    go.set(item, { leave, end: resolve, fail: () => reject(new Error(`broken ${item}`)) });
    return promise;
  };
  const of = (item: number) => {
    const found = go.get(item);
    if (!found) throw new Error(`${item} was not started`);
    return found;
  };
  return { work, started, of };
}

/** Everything that can go on has gone on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a pool", () => {
  it("works at most as wide as it is, and is drained when all has ended", async () => {
    const { work, started, of } = handWork();
    const pool = createPool(2, work, never);
    pool.add([1, 2, 3]);
    expect(started).toEqual([1, 2]);
    let isDrained = false;
    const drained = pool.drained().then(() => (isDrained = true));
    of(1).end();
    await settled();
    expect(started).toEqual([1, 2, 3]);
    of(2).end();
    await settled();
    expect(isDrained).toBe(false);
    of(3).end();
    await drained;
  });

  it("gives the place of who leaves to the next, and waits for who left", async () => {
    const { work, started, of } = handWork();
    const pool = createPool(1, work, never);
    pool.add([1, 2]);
    of(1).leave();
    expect(started).toEqual([1, 2]);
    let isDrained = false;
    const drained = pool.drained().then(() => (isDrained = true));
    of(2).end();
    await settled();
    expect(isDrained).toBe(false);
    of(1).end();
    await drained;
  });

  it("has at most twice its width unfinished, however often one leaves", async () => {
    const { work, started, of } = handWork();
    const pool = createPool(2, work, never);
    pool.add([1, 2, 3, 4, 5, 6, 7]);
    for (const item of [1, 1, 2, 3, 4]) of(item).leave();
    expect(started).toEqual([1, 2, 3, 4]);
    of(2).end();
    await settled();
    expect(started).toEqual([1, 2, 3, 4, 5]);
  });

  it("starts nothing more once something broke, even in who had left", async () => {
    const { work, started, of } = handWork();
    const pool = createPool(1, work, never);
    pool.add([1, 2, 3]);
    of(1).leave();
    of(1).fail();
    await settled();
    of(2).end();
    await expect(pool.drained()).rejects.toThrow("broken 1");
    expect(started).toEqual([1, 2]);
  });
});
