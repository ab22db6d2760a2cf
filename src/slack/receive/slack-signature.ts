import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/**
 * Checks Slack's request signing
 * (https://docs.slack.dev/authentication/verifying-requests-from-slack/), more strictly than Bolt:
 * a future date is refused like a past one, each header must appear exactly once in Slack's format,
 * and the raw bytes are checked.
 */

/** How far the date of a delivery may be from now (s). */
export const toleranceSeconds = 300;

interface Signed {
  timestamp: string;
  signature: string;
}

/**
 * Reads the two headers of a signed request, or says which one is wrong. If a header is sent twice,
 * Node joins the values, and the result has neither form.
 */
export function readSignature(
  headers: IncomingHttpHeaders,
  nowMs: number,
): Signed | "header" | "timestamp" {
  const timestamp = String(headers["x-slack-request-timestamp"]);
  const signature = String(headers["x-slack-signature"]);
  if (!/^\d{1,12}$/.test(timestamp) || !/^v0=[0-9a-f]{64}$/.test(signature)) return "header";
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

/**
 * Why a delivery was refused as not being Slack's. `timestamp`: the signature is right, and the date
 * is too far from now, so a clock is off or somebody repeats an old delivery.
 */
export function whyNotSigned(
  headers: IncomingHttpHeaders,
  body: Buffer,
  { secret, nowMs }: { secret: string; nowMs: number },
): "signature" | "timestamp" {
  const datedMs = Number(headers["x-slack-request-timestamp"]) * 1000;
  const signed = readSignature(headers, datedMs);
  if (typeof signed === "string" || !isSignedBy(secret, signed, body)) return "signature";
  return Math.abs(nowMs - datedMs) > toleranceSeconds * 1000 ? "timestamp" : "signature";
}

/** Says in the log what a right signature with a wrong date means. */
export const clockHint =
  "The signing secret is right. Compare this machine's clock with NTP: it is more than five minutes off, or somebody repeats an old delivery.";
