import { parseJson } from "../text/parse-json.ts";

/** The field beside a person's ID that has their name. */
const nameFields: Readonly<Record<string, readonly string[]>> = {
  id: ["name", "by"],
  voterId: ["name"],
  byId: ["by"],
};

/**
 * Creates the function that puts `pseudonym` in the place of a person in a stored text: of the ID
 * wherever it stands as a word, of the name that stands beside the ID, and of each of `names` as
 * words. A text that names nobody stays the same, to the letter.
 */
export function createPseudonymizer({
  person,
  pseudonym,
  names,
}: {
  person: string;
  pseudonym: string;
  names: readonly string[];
}): (text: string) => string {
  const ids = new RegExp(`(?<![A-Za-z0-9])${RegExp.escape(person)}(?![A-Za-z0-9])`, "g");
  const words = names.map((name) => RegExp.escape(name)).join("|");
  // A VM may be called after somebody: `olivia-test` isn't the person.
  const called = new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${words || "$."})(?![\\p{L}\\p{N}_-])`, "gu");
  const inText = (text: string) =>
    text.replaceAll(ids, () => pseudonym).replaceAll(called, () => pseudonym);

  function inValue(value: unknown): unknown {
    if (typeof value === "string") return redact(value);
    if (Array.isArray(value)) return value.map(inValue);
    if (typeof value !== "object" || value === null) return value;
    const fields: Record<string, unknown> = { ...value };
    const beside = Object.entries(nameFields).flatMap(([field, of]) =>
      fields[field] === person ? of : [],
    );
    return Object.fromEntries(
      Object.entries(fields).map(([field, inside]) => [
        inText(field),
        beside.includes(field) && typeof inside === "string" ? pseudonym : inValue(inside),
      ]),
    );
  }

  function redact(text: string): string {
    if (inText(text) === text) return text;
    const value = /^[{[]/.test(text) ? parseJson(text) : undefined;
    return typeof value === "object" && value !== null
      ? JSON.stringify(inValue(value))
      : inText(text);
  }
  return redact;
}
