import type { ComputeErrorKind, ComputeErrorReason } from "./errors.ts";

const sights: Record<ComputeErrorReason, string> = {
  status: "it answered",
  redirect: "it answered with a redirect, which is never followed",
  dns: "its name could not be resolved",
  connect: "the connection was refused or there is no way to it",
  tls: "its certificate or the TLS handshake failed",
  "forbidden-address": "its name leads to an address that is not allowed",
  timeout: "no whole answer in time",
  reset: "the connection broke",
  truncated: "the answer was cut off",
  "too-large": "the answer was larger than allowed",
  aborted: "the call was given up",
  answer: "the answer is not what the service documents",
};

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
