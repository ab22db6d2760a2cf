import type { Dispatcher } from "undici";
import type { ComputeErrorReason } from "./errors.ts";
import type { Method } from "./endpoints.ts";

export interface Request {
  origin: string;
  path: string;
  method: Method;
  headers: Record<string, string>;
  body?: string | undefined;
  /** For connecting, sending and reading the answer together. */
  timeoutMs: number;
  /** Most bytes of an answer's body. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

export interface Answer {
  status: number;
  /** Lower case, without parameters; empty when there is none. */
  contentType: string;
  retryAfter: string | undefined;
  text: string;
  /** The status arrived, the body did not arrive whole. */
  flaw?: ComputeErrorReason | undefined;
}

/** What came of one request and one answer. Never throws for what the network does. */
export type Exchange = Answer | { failure: ComputeErrorReason };

/** Bodies of refusals matter only for a sentence in them. */
const mostErrorBytes = 64 * 1024;

export async function exchange(dispatcher: Dispatcher, request: Request): Promise<Exchange> {
  const { origin, path, method, headers, body = null, signal } = request;
  if (signal?.aborted) return { failure: "aborted" };
  const controller = new AbortController();
  let stoppedBy: ComputeErrorReason | undefined;
  const stop = (reason: ComputeErrorReason) => {
    stoppedBy ??= reason;
    controller.abort();
  };
  const timer = setTimeout(stop, request.timeoutMs, "timeout");
  const giveUp = () => stop("aborted");
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    const response = await dispatcher.request({
      origin,
      path,
      method,
      headers,
      body,
      signal: controller.signal,
    });
    const ok = response.statusCode >= 200 && response.statusCode < 300;
    const most = ok ? request.maxBytes : Math.min(mostErrorBytes, request.maxBytes);
    const read = await readText(response.body, most, () => stoppedBy);
    const encoded = first(response.headers["content-encoding"]) ?? "identity";
    return {
      status: response.statusCode,
      contentType: (first(response.headers["content-type"]) ?? "")
        .split(";")[0]!
        .trim()
        .toLowerCase(),
      retryAfter: first(response.headers["retry-after"]),
      // Nobody asked for a compressed answer: what can't be read is treated as no text at all.
      text: encoded === "identity" ? read.text : "",
      flaw: read.flaw,
    };
  } catch (error) {
    return { failure: stoppedBy ?? reasonOf(error) };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
  }
}

type Read = { text: string; flaw?: ComputeErrorReason };

async function readText(
  body: AsyncIterable<unknown>,
  most: number,
  stoppedBy: () => ComputeErrorReason | undefined,
): Promise<Read> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      if (!Buffer.isBuffer(chunk)) continue;
      size += chunk.length;
      // Leaving the loop destroys the body and with it the connection.
      if (size > most) return { text: "", flaw: "too-large" };
      chunks.push(chunk);
    }
    return { text: Buffer.concat(chunks).toString("utf8") };
  } catch (error) {
    const reason = stoppedBy() ?? reasonOf(error);
    return { text: "", flaw: reason === "reset" ? "truncated" : reason };
  }
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** What an error of undici, net, tls or dns means. Codes only, never message text. */
export function reasonOf(error: unknown): ComputeErrorReason {
  const code = codeOf(error);
  if (code === "FORBIDDEN_ADDRESS") return "forbidden-address";
  if (/^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL|ETIMEOUT)/.test(code)) return "dns";
  if (/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EHOSTDOWN|ENETDOWN)$/.test(code))
    return "connect";
  if (/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/.test(code)) return "timeout";
  if (
    /TLS|SSL|CERT|SELF_SIGNED|UNABLE_TO|^EPROTO$|^CRL_|^HOSTNAME_MISMATCH$|^INVALID_(CA|PURPOSE)$/.test(
      code,
    )
  )
    return "tls";
  if (code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return "too-large";
  if (/^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/.test(code)) return "timeout";
  return "reset";
}

function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  // Several addresses were tried (happy eyeballs): the first failure speaks for them.
  if ("errors" in error && Array.isArray(error.errors) && error.errors.length > 0)
    return codeOf(error.errors[0]);
  return "cause" in error ? codeOf(error.cause) : "";
}
