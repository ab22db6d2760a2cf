import { expect } from "vitest";
import type { StoredRecord } from "../../src/redis/define-record.ts";

/** What a crash, an editor, or another program may leave in the place of any record. */
export const garbage: readonly string[] = [
  "",
  "{",
  "undefined",
  "not JSON",
  "null",
  '"text"',
  "-1",
];

/** Texts that none may take for this value: garbage, half of it, and values of another shape. */
function brokenTexts<Value>(record: StoredRecord<Value>, value: Value): readonly string[] {
  const text = record.write(value);
  const halves = [text.slice(0, text.length / 2), text.slice(0, -1), text.slice(1)];
  const members = Object.entries(JSON.parse(text) as Record<string, unknown>);
  const misshapen = members.map(([name, member]) => ({
    ...Object.fromEntries(members),
    [name]: typeof member === "number" ? "a text" : -1,
  }));
  const shaped = Array.isArray(value) ? misshapen.map((each) => Object.values(each)) : misshapen;
  return [...garbage, ...halves, ...shaped.map((each) => JSON.stringify(each))];
}

/**
 * Expects that a record reads what it wrote, with members that only another release knows unless it
 * says otherwise, and nothing else. `value` has every member.
 */
export function expectOnlyWhole<Value extends object>(
  record: StoredRecord<Value>,
  value: Value,
  { keepsMore = !Array.isArray(value) } = {},
): void {
  expect(record.parse(record.write(value), "key"), record.name).toEqual(value);
  if (keepsMore) {
    const newer = { ...value, ofAnotherRelease: { is: "kept" } };
    expect(record.parse(record.write(newer), "key"), record.name).toEqual(newer);
  }
  for (const text of brokenTexts(record, value))
    expect(record.parse(text, "key"), `${record.name}: ${text}`).toBeUndefined();
}
