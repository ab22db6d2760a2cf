import { createHash } from "node:crypto";

/** Numbers 0 ≤ n < 1 that are the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** 48 bytes in hex that belong to a text: looks like a launch measurement. */
export function fingerprintOf(text: string): string {
  return createHash("sha384").update(text).digest("hex");
}

/** A number 0 ≤ n < 1 that belongs to a text (FNV-1a). */
export function fractionOf(text: string): number {
  let hash = 2166136261;
  for (let at = 0; at < text.length; at += 1)
    hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
  return createRandom(hash)();
}
