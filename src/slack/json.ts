/** Untrusted JSON. */
export type WebData = Readonly<Record<string, unknown>>;

/** The value as an object. Empty when it isn't one. */
export function payloadOf(value: unknown): WebData {
  return typeof value === "object" && value !== null ? (value as WebData) : {};
}

/** `at(body, "container", "message_ts")`. Undefined when the path ends early. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = payloadOf(found)[name];
  return found;
}

/** The text at that path. Empty when there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

/** The list at that path. Empty when there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

export function textsAt(value: unknown, ...path: readonly string[]): string[] {
  return listAt(value, ...path).filter((one) => typeof one === "string");
}
