import type { IncomingMessage } from "node:http";
import { expect, it } from "vitest";
import { createUnverified } from "../../../src/slack/receive/unverified.ts";

/** Requests by name, and those that had to make room. */
function holding(limits: { most: number; mostBytes: number }) {
  const unverified = createUnverified(limits);
  const out: string[] = [];
  const begin = (name: string) => {
    const request = { name } as unknown as IncomingMessage;
    unverified.begin(request, () => void out.push(name));
    return (bytes: number) => {
      if (bytes === 0) unverified.end(request);
      else unverified.add(request, Buffer.alloc(bytes));
    };
  };
  return { begin, out };
}

it("of too many requests without a checked signature the oldest makes room", () => {
  const { begin, out } = holding({ most: 2, mostBytes: 100 });
  begin("a");
  const b = begin("b");
  begin("c");
  expect(out).toEqual(["a"]);
  b(0);
  begin("d");
  expect(out).toEqual(["a"]);
});

it("of too many bytes the largest does, and what left or was checked counts no more", () => {
  const { begin, out } = holding({ most: 9, mostBytes: 100 });
  const [small, large, checked] = [begin("small"), begin("large"), begin("checked")];
  checked(50);
  checked(0);
  small(20);
  large(70);
  small(20);
  expect(out).toEqual(["large"]);
  large(1000);
  small(50);
  expect(out).toEqual(["large"]);
});
