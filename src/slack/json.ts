/** Untrusted JSON. */
export type WebData = Readonly<Record<string, unknown>>;

/** The value as an object. Empty when it isn't one. */
export function payloadOf(value: unknown): WebData {
  return typeof value === "object" && value !== null ? (value as WebData) : {};
}

/** `at(body, "container", "message_ts")`. Undefined when the path ends early. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let inner = value;
  for (const name of path) inner = payloadOf(inner)[name];
  return inner;
}

/** The text at that path. Empty when there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const text = at(value, ...path);
  return typeof text === "string" ? text : "";
}

/** The list at that path. Empty when there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const list = at(value, ...path);
  return Array.isArray(list) ? list : [];
}

export function textsAt(value: unknown, ...path: readonly string[]): string[] {
  return listAt(value, ...path).filter((text) => typeof text === "string");
}
