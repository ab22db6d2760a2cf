import type { Storm } from "../../../sandbox/compute/weather.ts";

/**
 * What goes wrong with calls in the campaign. The shares are of all calls that change something; together 26 %. Rules strike
 * one by one, so each is given as the share of what the ones before it left.
 */
const onChanges: readonly (readonly [share: number, Storm])[] = [
  [0.035, { lost: "before" }],
  [0.045, { lost: "after" }],
  [0.03, { status: 500, errorShape: "html" }],
  [0.035, { status: 502, applied: true }],
  [0.02, { hang: "before" }],
  [0.025, { hang: "after" }],
  [0.015, { status: 429, retryAfter: 1 }],
  [0.02, { cut: "length" }],
  [0.02, { lateMs: 1200, hang: "before" }],
  [0.015, { answer: "html" }],
];

/** Reads fail as often; they are tried again. */
const onReads: readonly (readonly [share: number, Storm])[] = [
  [0.1, { lost: "before" }],
  [0.08, { status: 503 }],
  [0.04, { slowMs: 300 }],
  [0.04, { cut: "chunk" }],
];

export const faultyShare = () => onChanges.reduce((sum, [share]) => sum + share, 0);

/** 26 of 100 calls, exactly one fault each. */
export function badWeather(): Storm[] {
  return [...exclusive(onChanges, "writes"), ...exclusive(onReads, "reads")];
}

/** Of rules with a probability at most one strikes: each is given as its share of what the ones before it left. */
function exclusive(rules: typeof onChanges, match: string): Storm[] {
  let left = 1;
  return rules.map(([share, weather]) => {
    const probability = share / left;
    left -= share;
    return { ...weather, match, probability };
  });
}
