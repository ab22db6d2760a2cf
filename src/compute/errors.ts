import { endpoints } from "./compute.ts";

/** What a failed call means for its caller. */
export type ComputeErrorKind =
  | "refused" // the service said no (400, 401, 403, 405, 422): nothing happened
  | "not-found" // 404
  | "conflict" // 409: its state doesn't allow it, or it exists already
  | "busy" // 429: nothing happened, retry after `retryAfterMs`
  // no byte of the request left (DNS, connection refused, TLS, connect timeout); of a read also: no usable answer within
  // the retry budget
  | "unreachable"
  | "unclear" // of changes only: it may or may not have happened
  | "unexpected"; // of reads: something required is missing, or it isn't JSON

const sights = {
  status: "it answered",
  redirect: "it answered with a redirect, which is never followed",
  dns: "its name could not be resolved",
  connect: "the connection was refused or there is no route to it",
  proxy: "the proxy opened no connection to it",
  tls: "its certificate or the TLS handshake failed",
  "forbidden-address": "its name leads to an address that is not allowed",
  timeout: "no complete answer in time",
  reset: "the connection broke",
  truncated: "the answer was cut off",
  "too-large": "the answer was larger than allowed",
  aborted: "the call was canceled",
  answer: "the answer is not what the service documents",
} as const;

/** What was seen, for alarms and metrics. A redirect is never followed. */
export type ComputeErrorReason = keyof typeof sights;

/** A failed call. The message names the endpoint and never holds a credential, an address or a body. */
export class ComputeError extends Error {
  override readonly name = "ComputeError";
  readonly kind: ComputeErrorKind;
  /** Method and path template, e.g. `POST /v1/vms/{vm_id}/restart`. */
  readonly endpoint: string;
  /** HTTP status, when there was an answer. */
  readonly status: number | undefined;
  /** The service's own words: plain, at most 300 characters, untrusted. */
  readonly serviceMessage: string | undefined;
  /** From `Retry-After` (429 and 503). */
  readonly retryAfterMs: number | undefined;
  readonly reason: ComputeErrorReason | undefined;
  /** The key was refused (401), and meanwhile there is another one. */
  readonly hasNewKey: boolean;

  constructor(kind: ComputeErrorKind, endpoint: string, message: string, detail: Detail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.kind = kind;
    this.endpoint = endpoint;
    this.status = detail.status;
    this.serviceMessage = detail.serviceMessage;
    this.retryAfterMs = detail.retryAfterMs;
    this.reason = detail.reason;
    this.hasNewKey = detail.hasNewKey ?? false;
  }
}

type Known = "status" | "serviceMessage" | "retryAfterMs" | "reason" | "hasNewKey";
type Detail = Partial<Pick<ComputeError, Known>> & { cause?: unknown };

/** Read all the time, and no single broken record makes it fail. */
const controlRead = endpoints.listProjects;

/**
 * Whether a call shows that the service is available. Silence is only no answer at all, or a 5xx of the control read: a 500
 * for one record shows nothing of the rest. A canceled or unclear call shows neither.
 */
export function signOfService(
  endpoint: string,
  kind: ComputeErrorKind | undefined,
  reason: ComputeErrorReason | undefined,
): "answer" | "silence" | undefined {
  if (kind === "unclear" || reason === "aborted") return undefined;
  if (kind !== "unreachable") return "answer";
  const isOfOne = reason === "status" || reason === "answer";
  return isOfOne && endpoint !== controlRead ? undefined : "silence";
}

const meanings: Record<ComputeErrorKind, string> = {
  refused: "refused",
  "not-found": "not found",
  conflict: "its state does not allow it",
  busy: "too many requests",
  unreachable: "could not be reached",
  unclear: "it may or may not have happened",
  unexpected: "the answer can't be used",
};

/** The text of a ComputeError: endpoint, meaning, what was seen. Nothing in it comes from the answer's body. */
export function describeFailure(
  endpoint: string,
  kind: ComputeErrorKind,
  reason: ComputeErrorReason,
  status: number | undefined,
): string {
  const seen = status === undefined ? sights[reason] : `${sights[reason]} (${status})`;
  return `${endpoint}: ${meanings[kind]}: ${seen}`;
}
