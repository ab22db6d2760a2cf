import type { ComputeErrorKind, ComputeErrorReason } from "./errors.ts";
import { parseBody, type Body } from "./body.ts";
import type { Answer, Exchange } from "./exchange.ts";

/** What an exchange means: an answer to use, or a kind of failure and whether a read may be tried again. */
export type Verdict =
  | { answer: Answer; body: Body }
  | { kind: ComputeErrorKind; reason: ComputeErrorReason; answer?: Answer; again: boolean };

/** Answers that are given before anything is done. A status that isn't in one of these sets proves nothing. */
const refusals = new Set([
  400, 401, 402, 403, 405, 411, 412, 413, 414, 415, 417, 421, 422, 426, 428, 431, 451,
]);
/** 501 and 505 will not get better by asking again. */
const lasting = new Set([501, 505]);

/**
 * A call that changes something (reliability.md, section 2). Without a connection nothing left us; with one, only an
 * answer whose status says so proves that nothing happened; a cut 2xx is unclear, a whole one is accepted whatever it holds.
 */
export function judgeChange(seen: Exchange, connected: boolean): Verdict {
  if ("failure" in seen) {
    return { kind: connected ? "unclear" : "unreachable", reason: seen.failure, again: false };
  }
  if (seen.status >= 200 && seen.status < 300) {
    if (seen.flaw !== undefined)
      return { kind: "unclear", reason: seen.flaw, answer: seen, again: false };
    const body = parseBody(seen);
    if (body === "broken-off")
      return { kind: "unclear", reason: "truncated", answer: seen, again: false };
    return { answer: seen, body };
  }
  return {
    kind: kindOf(seen.status) ?? "unclear",
    reason: reasonFor(seen.status),
    answer: seen,
    again: false,
  };
}

/** A read: what may pass is tried again, what the service said clearly is not. */
export function judgeRead(seen: Exchange, isSame?: (text: string) => boolean): Verdict {
  if ("failure" in seen) {
    const final =
      seen.failure === "aborted" || seen.failure === "forbidden-address" || seen.failure === "tls";
    if (seen.failure === "too-large")
      return { kind: "unexpected", reason: "too-large", again: false };
    return { kind: "unreachable", reason: seen.failure, again: !final };
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
  if (known !== undefined)
    return { kind: known, reason: "status", answer: seen, again: known === "busy" };
  if (status < 400)
    return { kind: "unexpected", reason: reasonFor(status), answer: seen, again: false };
  const passing = status >= 500 ? !lasting.has(status) : status === 408 || status === 425;
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
