import { describe, expect, it } from "vitest";
import { emptyDeclarations, emptyMemberNames } from "./declared-names.ts";
import { readSources } from "./sources.ts";

describe("declarations", () => {
  const production = readSources(["src"]);

  it("are named by a noun that a search finds, not by a pronoun", () => {
    expect(emptyDeclarations(production)).toEqual([]);
  });

  it("are named when they break the rule, wherever a name can be declared", () => {
    const planted = [
      "import { by } from './b.ts';",
      "const one = 1, { what, found: [said = 2], ...told } = record;",
      "function its(by?: string, { is }: Known = {}, ...theirs: number[]) {}",
      "const fine = records.map(({ found }, one) => found);",
      "const named = function what() {}; class said {}",
      "try {} catch (found) {} for (const one of []) {}",
      "type Asks = (what: string) => void; interface Known { ask(by: string): void }",
      "interface Told { [one: string]: number; new (told: string): Told; (is: string): void }",
    ];
    expect(emptyDeclarations(new Map([["src/a.ts", planted.join("\n")]]))).toEqual(
      [
        [1, "by"],
        [2, "one"],
        [2, "what"],
        [2, "said"],
        [2, "told"],
        [3, "its"],
        [3, "by"],
        [3, "is"],
        [3, "theirs"],
        [4, "found"],
        [4, "one"],
        [5, "what"],
        [5, "said"],
        [6, "found"],
        [6, "one"],
        [7, "what"],
        [7, "by"],
        [8, "one"],
        [8, "told"],
        [8, "is"],
      ].map(([line, name]) => `src/a.ts:${line} ${name}`),
    );
  });

  it("are something else than members of records, types, and classes", () => {
    const members = [
      "interface Known { what: string; by?: string; told(): void }",
      "class Kept { found = 1; said() { return this.found; } }",
      "const record = { one: 1, is() {}, its: record.by, [by]: 2 };",
      "const { by: requester, what: { one: first } } = record;",
      "record.what = said;",
      "function isVm(value: unknown): value is Vm {}",
    ];
    expect(emptyDeclarations(new Map([["src/a.ts", members.join("\n")]]))).toEqual([]);
  });

  it("are members, too, but for those whose name is a promise", () => {
    expect(emptyMemberNames(production)).toEqual([]);
  });

  it("are named as members, wherever one can be declared", () => {
    const members = [
      "interface Known { what: string; by?: string; told(): void; name: string }",
      "type Moved = { is: 'moved' } | (Known & { readonly one: { theirs: number } });",
      "class Kept { found = 1; said() { return this.found; } }",
      "function create(more: { its: string }) { return { tell() {}, saw: () => 1, what: 2 }; }",
      "const { by: requester } = record; record.what = { is: 1, one };",
    ];
    expect(
      emptyMemberNames(
        new Map([["src/a.ts", members.join("\n")]]),
        new Set(["Known.by", "Old.is"]),
      ),
    ).toEqual([
      "src/a.ts:1 Known.what",
      "src/a.ts:1 Known.told",
      "src/a.ts:2 Moved.is",
      "src/a.ts:2 Moved.one",
      "src/a.ts:2 Moved.theirs",
      "src/a.ts:3 Kept.found",
      "src/a.ts:3 Kept.said",
      "src/a.ts:4 create.its",
      "src/a.ts:4 create.tell",
      "src/a.ts:4 create.saw",
      "nowhere Old.is",
    ]);
  });
});
