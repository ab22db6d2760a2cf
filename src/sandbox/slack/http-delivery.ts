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
