import { expect, it } from "vitest";
import { defineService } from "../../src/registry/service-key.ts";

const shelfOf = defineService<{ size: number }>("shelf");

it("finds in a context what was provided, whatever else is there under the same name", () => {
  const other = defineService<string>("shelf");
  const services = new Map([other.providedBy("another"), shelfOf.providedBy({ size: 3 })]);
  expect(shelfOf({ services }).size).toBe(3);
  expect(other({ services })).toBe("another");
});

it("a service key says what is missing where nothing provides it", () => {
  expect(() => shelfOf({ services: new Map() })).toThrow("nothing provides shelf here");
});
