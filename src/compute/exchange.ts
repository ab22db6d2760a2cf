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

/**
 * Works on undici's events themselves: its promises and streams cost as much as all the rest, and a refresh makes
 * hundreds of these calls at a time.
 */
export function exchange(dispatcher: Dispatcher, request: Request): Promise<Exchange> {
  const { origin, path, method, headers, body = null, signal } = request;
  if (signal?.aborted) return Promise.resolve({ failure: "aborted" });
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  let wire: Dispatcher.DispatchController | undefined;
  let stoppedBy: ComputeErrorReason | undefined;
  let answer: Omit<Answer, "text"> | undefined;
  let most = request.maxBytes;
  let isPlain = true;
  let size = 0;
  const chunks: Buffer[] = [];

  // Destroys the connection. A request that still waits for one is stopped when it gets it.
  const stop = (reason: ComputeErrorReason) => {
    stoppedBy ??= reason;
    wire?.abort(new Error(stoppedBy));
  };
  const timer = setTimeout(stop, request.timeoutMs, "timeout");
  const giveUp = () => stop("aborted");
  signal?.addEventListener("abort", giveUp, { once: true });
  const end = (came: Exchange) => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
    resolve(came);
  };
  const fail = (error: unknown) => {
    const reason = stoppedBy ?? reasonOf(error);
    if (!answer) return end({ failure: reason });
    end({ ...answer, text: "", flaw: reason === "reset" ? "truncated" : reason });
  };

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      wire = controller;
      if (stoppedBy !== undefined) stop(stoppedBy);
    },
    onResponseStart(_, status, received) {
      if (status < 200) return;
      if (status >= 300) most = Math.min(mostErrorBytes, most);
      // Nobody asked for a compressed answer: what can't be read is treated as no text at all.
      isPlain = (first(received["content-encoding"]) ?? "identity") === "identity";
      answer = {
        status,
        contentType: (first(received["content-type"]) ?? "").split(";")[0]!.trim().toLowerCase(),
        retryAfter: first(received["retry-after"]),
      };
    },
    onResponseData(_, chunk) {
      size += chunk.length;
      if (size > most) stop("too-large");
      else chunks.push(chunk);
    },
    onResponseEnd() {
      if (!answer) return fail(undefined);
      end({ ...answer, text: isPlain ? textOf(chunks) : "" });
    },
    onResponseError: (_, error) => fail(error),
  };
  try {
    dispatcher.dispatch({ origin, path, method, headers, body }, handler);
  } catch (error) {
    fail(error);
  }
  return promise;
}

function textOf(chunks: readonly Buffer[]): string {
  const [only] = chunks;
  const whole = only && chunks.length === 1 ? only : Buffer.concat(chunks);
  return whole.toString("utf8");
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
