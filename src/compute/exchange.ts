import { type Answer, type Body, isForeign, parseBody } from "./body.ts";
import type { Dispatcher } from "undici";
import type { Method } from "./compute.ts";
import type { ComputeErrorKind, ComputeErrorReason } from "./errors.ts";

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

/** What came of one request and one answer. Never throws for what the network does. */
export type Exchange = Answer | { failure: ComputeErrorReason };

/** Bodies of refusals matter only for a sentence in them. */
const maxErrorBytes = 64 * 1024;

/** Uses undici's raw events: its promises and streams would double the cost of a refresh's hundreds of calls. */
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

  // Destroys the connection, or stops the request when it gets one.
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
      if (status >= 300) most = Math.min(maxErrorBytes, most);
      // Compression was not requested: an encoded answer counts as empty.
      isPlain = (first(received["content-encoding"]) ?? "identity") === "identity";
      answer = {
        status,
        contentType: (first(received["content-type"]) ?? "").split(";")[0]!.trim().toLowerCase(),
        retryAfter: first(received["retry-after"]),
        date: first(received["date"]),
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
function reasonOf(error: unknown): ComputeErrorReason {
  const code = codeOf(error);
  if (code === "FORBIDDEN_ADDRESS") return "forbidden-address";
  if (code === "PROXY_REFUSED") return "proxy";
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
  // Several addresses were tried (happy eyeballs): the first failure counts.
  if ("errors" in error && Array.isArray(error.errors) && error.errors.length > 0)
    return codeOf(error.errors[0]);
  return "cause" in error ? codeOf(error.cause) : "";
}

/** An answer to use, or a failure; `again`: a read may be retried. */
export type Verdict =
  | { answer: Answer; body: Body }
  | { kind: ComputeErrorKind; reason: ComputeErrorReason; answer?: Answer; again: boolean };

/** Given before anything is done. A status outside these sets proves nothing. */
const refusals = new Set([
  400, 401, 402, 403, 405, 411, 412, 413, 414, 415, 417, 421, 422, 426, 428, 431, 451,
]);

/**
 * Without a connection nothing was sent. With one, only an answer's status proves that nothing happened; a cut 2xx is
 * unclear, a whole one is accepted whatever it holds. A foreign page proves nothing.
 */
export function judgeChange(seen: Exchange, connected: boolean): Verdict {
  if ("failure" in seen) {
    return { kind: connected ? "unclear" : "unreachable", reason: seen.failure, again: false };
  }
  if (isForeign(seen)) return { kind: "unclear", reason: "answer", answer: seen, again: false };
  if (seen.status >= 200 && seen.status < 300) {
    const body = parseBody(seen);
    const reason = seen.flaw ?? (body === "broken-off" ? "truncated" : undefined);
    if (reason !== undefined) return { kind: "unclear", reason, answer: seen, again: false };
    return { answer: seen, body };
  }
  return {
    kind: kindOf(seen.status) ?? "unclear",
    reason: reasonFor(seen.status),
    answer: seen,
    again: false,
  };
}

/** Transient failures are retried, clear answers are not. */
export function judgeRead(seen: Exchange, isSame?: (text: string) => boolean): Verdict {
  if ("failure" in seen) {
    const reason = seen.failure;
    if (reason === "too-large") return { kind: "unexpected", reason, again: false };
    const isFinal = reason === "aborted" || reason === "forbidden-address" || reason === "tls";
    return { kind: "unreachable", reason, again: !isFinal };
  }
  const { status, flaw } = seen;
  if (status >= 200 && status < 300) {
    if (flaw === "too-large")
      return { kind: "unexpected", reason: flaw, answer: seen, again: false };
    if (flaw !== undefined)
      return { kind: "unreachable", reason: flaw, answer: seen, again: flaw !== "aborted" };
    const body = isSame?.(seen.text) ? "same" : parseBody(seen);
    if (body === "broken-off")
      return { kind: "unreachable", reason: "truncated", answer: seen, again: true };
    return { answer: seen, body };
  }
  const known = kindOf(status);
  if (known !== undefined && known !== "busy" && isForeign(seen))
    return { kind: "unreachable", reason: "answer", answer: seen, again: false };
  if (known !== undefined)
    return { kind: known, reason: "status", answer: seen, again: known === "busy" };
  if (status < 400)
    return { kind: "unexpected", reason: reasonFor(status), answer: seen, again: false };
  const passing =
    status >= 500 ? status !== 501 && status !== 505 : status === 408 || status === 425;
  return {
    kind: status >= 500 || passing ? "unreachable" : "refused",
    reason: "status",
    answer: seen,
    again: passing,
  };
}

function kindOf(status: number): ComputeErrorKind | undefined {
  if (refusals.has(status)) return "refused";
  if (status === 404 || status === 410) return "not-found";
  if (status === 409 || status === 423) return "conflict";
  if (status === 429) return "busy";
  return undefined;
}

function reasonFor(status: number): ComputeErrorReason {
  return status >= 300 && status < 400 ? "redirect" : "status";
}
