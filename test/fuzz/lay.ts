/** Puts `value` into the payload at that path; undefined takes away what is there. */
export function lay(
  payload: Record<string, unknown>,
  [name = "", ...rest]: readonly string[],
  value: unknown,
): void {
  if (rest.length === 0) {
    if (value === undefined) delete payload[name];
    else payload[name] = value;
    return;
  }
  const inner = payload[name];
  payload[name] =
    typeof inner === "object" && inner !== null
      ? Array.isArray(inner)
        ? [...inner]
        : { ...inner }
      : {};
  lay(payload[name] as Record<string, unknown>, rest, value);
}
