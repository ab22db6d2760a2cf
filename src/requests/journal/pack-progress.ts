import type { StoredRequest } from "./record.ts";

/** What only the next read would need. */
const readsOfEnded = {
  sameSince: undefined,
  quietSince: undefined,
  quietLooks: undefined,
  blindSince: undefined,
  looks: undefined,
};
/** Stands for an `after` that equals `before`. */
const same = "same";

/** Of a request's progress, what is stored in another form. */
interface Packable {
  before?: unknown;
  after?: unknown;
  lastLook?: { print: string };
}

/**
 * As it is stored. What was read before and after is often the same, and a request that has ended is kept for long: of its reads,
 * only what is shown.
 */
export function packProgress(progress: Packable, isFinal: boolean): string {
  const { before, after, lastLook } = progress;
  const isSame = after !== undefined && JSON.stringify(after) === JSON.stringify(before);
  return JSON.stringify({
    ...progress,
    ...(isSame ? { after: same } : {}),
    ...(isFinal ? readsOfEnded : {}),
    ...(isFinal && lastLook ? { lastLook: { ...lastLook, print: "" } } : {}),
  });
}

export function unpackProgress<Progress extends Packable>(packed: Progress): Progress {
  return packed.after === same ? { ...packed, after: packed.before } : packed;
}

/**
 * Once Slack has all of an ended request, of its record only what is shown: the address for answers works for half an hour, and its
 * trace has ended with it. Undefined while it may still be answered there.
 */
export function packTold({
  record,
  final,
  delivered,
}: StoredRequest): { record: string } | undefined {
  if (!final || delivered.fallback !== undefined) return undefined;
  const { sealedResponseUrl, trace, parentSpan, ...kept } = record;
  const isKept = [sealedResponseUrl, trace, parentSpan].every((one) => one === undefined);
  return isKept ? undefined : { record: JSON.stringify(kept) };
}
