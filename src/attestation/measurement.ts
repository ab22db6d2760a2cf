/**
 * A measurement in the one form in which two of them can be compared: lower-case hex. `0x`, spaces, colons and case
 * don't count; base64 of a usual length (32, 48 or 64 bytes) becomes hex; anything else stays as it is.
 */
export function normalise(measurement: string): string {
  const bare = measurement.trim().replaceAll(/[\s:]/g, "");
  const hex = bare.replace(/^0x/i, "").toLowerCase();
  if (/^([0-9a-f]{2})+$/.test(hex)) return hex;
  const bytes = fromBase64(bare);
  return bytes && [32, 48, 64].includes(bytes.length) ? bytes.toString("hex") : measurement.trim();
}

/** Strict base64 or base64url, white space allowed; undefined for anything else. `Buffer.from` would skip what it doesn't know. */
export function fromBase64(text: string): Buffer | undefined {
  const bare = text.replaceAll(/\s/g, "").replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$|^[A-Za-z0-9_-]*$/.test(bare) || bare.length % 4 === 1) return undefined;
  return Buffer.from(bare, "base64");
}

/** `4f2a…91bc`: enough to tell two apart at a glance; the whole one is in the report's file. */
export function short(measurement: string): string {
  const points = Array.from(measurement);
  return points.length <= 12
    ? measurement
    : `${points.slice(0, 4).join("")}…${points.slice(-4).join("")}`;
}
