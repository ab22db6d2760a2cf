/** JSON as it comes from outside: nothing about it is known until it is looked at. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object, empty when it is anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** The value as a list of objects; what isn't one is left out. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : otherwise;
}

/** The words of a text object, or of a bare string. */
export function wordsOf(value: unknown): string {
  return typeof value === "string" ? value : textOf(fieldsOf(value)["text"]);
}

/** A deep copy, so that nobody outside can change what is stored. */
export function copyOf<T>(value: T): T {
  return structuredClone(value);
}
