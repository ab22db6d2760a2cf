import { createHmac } from "node:crypto";
import { request } from "node:http";

export interface HttpAnswer {
  status: number;
  body: string;
  noRetry: boolean;
}

/** Posts to the app. Rejects with an Error whose message is `operation_timeout` or `dispatch_failed`. */
export function post(
  url: string,
  body: string,
  headers: Record<string, string>,
  timeoutMs: number,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      {
        method: "POST",
        agent: false,
        headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", () => fail("dispatch_failed"));
        response.on("end", () => {
          clearTimeout(timer);
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString(),
            noRetry: response.headers["x-slack-no-retry"] === "1",
          });
        });
      },
    );
    const fail = (error: string) => {
      clearTimeout(timer);
      call.destroy();
      reject(new Error(error));
    };
    const timer = setTimeout(() => fail("operation_timeout"), timeoutMs);
    call.on("error", () => fail("dispatch_failed"));
    call.end(body);
  });
}

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
