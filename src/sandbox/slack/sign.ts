import { createHmac } from "node:crypto";

/** Slack's signature of a delivery: `timestamp` in seconds, `body` as it is sent. https://docs.slack.dev/authentication/verifying-requests-from-slack/ */
export function sign(secret: string, timestamp: number, body: string): string {
  return `v0=${createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest("hex")}`;
}

export function signedHeaders(
  secret: string,
  timestamp: number,
  body: string,
): Record<string, string> {
  return {
    "x-slack-request-timestamp": String(timestamp),
    "x-slack-signature": sign(secret, timestamp, body),
  };
}
