import { endpoints } from "./endpoints.ts";

/**
 * What a failed call to the service means for whoever made it:
 *
 * - `refused`      the service said no (400, 401, 403, 405, 422): nothing happened
 * - `not-found`    404
 * - `conflict`     409: the state does not allow it, or it is there already
 * - `busy`         429: nothing happened, come back after `retryAfterMs`
 * - `unreachable`  no byte of the request left us (DNS, connection refused, TLS, connect timeout);
 *                  for a read also: no usable answer within the retry budget
 * - `unclear`      only for calls that change something: it may or may not have happened
 * - `unexpected`   the answer of a read lacks something required, or is not JSON
 */
export type ComputeErrorKind =
  | "refused"
  | "not-found"
  | "conflict"
  | "busy"
  | "unreachable"
  | "unclear"
  | "unexpected";

/**
 * What was seen, for alarms and metrics. `tls` and `forbidden-address` (a name that leads to link-local, loopback or
 * private addresses) happen before anything is sent; `redirect` is never followed.
 */
export type ComputeErrorReason =
  | "status"
  | "redirect"
  | "dns"
  | "connect"
  | "tls"
  | "forbidden-address"
  | "timeout"
  | "reset"
  | "truncated"
  | "too-large"
  | "aborted"
  | "answer";

/** A failed call. The message names the endpoint and never holds a credential, an address or a body. */
export class ComputeError extends Error {
  override readonly name = "ComputeError";
  readonly kind: ComputeErrorKind;
  /** Method and path template, e.g. `POST /v1/vms/{vm_id}/restart`. */
  readonly endpoint: string;
  /** HTTP status, when there was an answer. */
  readonly status: number | undefined;
  /** The service's own words, made plain (no HTML, at most 300 characters, untrusted). */
  readonly serviceMessage: string | undefined;
  /** How long the service asked us to wait (429 and 503). */
  readonly retryAfterMs: number | undefined;
  readonly reason: ComputeErrorReason | undefined;

  constructor(
    kind: ComputeErrorKind,
    endpoint: string,
    message: string,
    detail: {
      status?: number | undefined;
      serviceMessage?: string | undefined;
      retryAfterMs?: number | undefined;
      reason?: ComputeErrorReason | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.kind = kind;
    this.endpoint = endpoint;
    this.status = detail.status;
    this.serviceMessage = detail.serviceMessage;
    this.retryAfterMs = detail.retryAfterMs;
    this.reason = detail.reason;
  }
}

/** Lists of projects are read all the time, and no single broken record makes them fail. */
const controlRead = endpoints.listProjects;

/**
 * Whether a call shows that the service is there. A status of 500 for one record shows nothing of the rest: only the control
 * read, or no answer at all, counts as silence. Given up by ourselves, or unclear, a call shows neither.
 */
export function signOfService(
  endpoint: string,
  kind: ComputeErrorKind | undefined,
  reason: ComputeErrorReason | undefined,
): "answer" | "silence" | undefined {
  if (kind === "unclear" || reason === "aborted") return undefined;
  if (kind !== "unreachable") return "answer";
  return reason === "status" && endpoint !== controlRead ? undefined : "silence";
}
