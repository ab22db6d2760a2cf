import { expect, it } from "vitest";
import { addServices, defineParts, defineService } from "../../src/registry/service-key.ts";

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

it("finds the parts of all who provide some, in their order, and none where nobody does", () => {
  const booksOf = defineParts<string>("books");
  const services = new Map<symbol, unknown>();
  expect(booksOf({ services })).toEqual([]);
  addServices(services, [booksOf.providedBy("a"), booksOf.providedBy("b")]);
  addServices(services, [booksOf.providedBy("c")]);
  expect(booksOf({ services })).toEqual(["a", "b", "c"]);
});

it("a second provider of one service is refused", () => {
  const provided = [shelfOf.providedBy({ size: 3 }), shelfOf.providedBy({ size: 4 })];
  expect(() => addServices(new Map(), provided)).toThrow("two features provide shelf");
});
