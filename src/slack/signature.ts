import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Slack's request signing (https://docs.slack.dev/authentication/verifying-requests-from-slack/), stricter than Bolt's:
 * a date in the future is refused as one in the past is, headers must be there exactly once and look exactly as Slack
 * writes them, and the bytes are checked as they came.
 */

export type SignatureProblem = "header" | "timestamp" | "signature";

/** How far the request's time may be from ours, before or after. */
export const toleranceSeconds = 300;

export interface Signed {
  timestamp: string;
  signature: string;
}

/** Looks at the headers alone, before any body is read. `nowMs` is our time. */
export function readSignature(
  headers: Readonly<Record<string, readonly string[] | undefined>>,
  nowMs: number,
): Signed | SignatureProblem {
  const [timestamps, signatures] = [
    headers["x-slack-request-timestamp"],
    headers["x-slack-signature"],
  ];
  const [timestamp, signature] = [timestamps?.[0], signatures?.[0]];
  if (timestamps?.length !== 1 || signatures?.length !== 1) return "header";
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) return "header";
  if (signature === undefined || !/^v0=[0-9a-f]{64}$/.test(signature)) return "header";
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds) return "timestamp";
  return { timestamp, signature };
}

export function isSignedBy(
  secret: string,
  { timestamp, signature }: Signed,
  body: Buffer,
): boolean {
  const wanted = createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest("hex");
  return timingSafeEqual(Buffer.from(signature), Buffer.from(`v0=${wanted}`));
}
