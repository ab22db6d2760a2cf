/**
 * How urgent something is that is known now, the most urgent first. `alarm`: somebody must act.
 * `warning`: somebody should look. `notice`: this isn't how it usually is. `info`: it matters only to
 * who changes the target. `well`: it was checked, and is as it should be.
 */
export const severities = ["alarm", "warning", "notice", "info", "well"] as const;
export type Severity = (typeof severities)[number];
