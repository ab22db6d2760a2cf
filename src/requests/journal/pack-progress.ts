import type { Vm } from "../../compute/compute.ts";
import type { Seen } from "../../registry/define.ts";
import {
  isList,
  type Progress,
  type RequestRecord,
  type StoredRequest,
  usualVia,
} from "./record.ts";

/** What only the next read would need. */
const readsOfEnded = {
  endedAt: undefined,
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
  lastLook?: { print?: string };
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
    ...(isFinal && lastLook ? { lastLook: { ...lastLook, print: undefined } } : {}),
  });
}

export function unpackProgress<Packed extends Packable>(packed: Packed): Packed {
  const { after, before, lastLook } = packed;
  return {
    ...packed,
    ...(after === same ? { after: before } : {}),
    ...(lastLook ? { lastLook: { ...lastLook, print: lastLook.print ?? "" } } : {}),
  };
}

/** The address for answers works for half an hour, its trace has ended with it, and its time stands beside the record. */
const originOfEnded = {
  sealedResponseUrl: undefined,
  interaction: undefined,
  trace: undefined,
  parentSpan: undefined,
  createdAt: undefined,
};

/**
 * Once Slack has all of an ended request, what is shown of it. Undefined while it may still be answered at the address for
 * answers.
 */
export function packTold({
  record,
  progress,
  final,
  delivered,
}: StoredRequest): { record: string; progress: string } | undefined {
  if (!final || delivered.fallback !== undefined) return undefined;
  const isBound = record.approval !== undefined || progress.safety !== undefined;
  const terms = isBound ? {} : termsOf(record);
  return {
    record: JSON.stringify({ ...record, ...originOfEnded, ...terms, ...usualOf(record) }),
    progress: packProgress(onlyShown(progress), final),
  };
}

/** What its start was judged by. Votes and an undo are bound to it. */
const termsOf = ({ target }: RequestRecord) => ({
  runsUntil: undefined,
  target: { ...target, status: undefined, createdAt: undefined, specs: undefined },
});

/** What `parseStored` takes where nothing is said. */
const usualOf = ({ via }: RequestRecord) => (via === usualVia ? { via: undefined } : {});

/**
 * What recaps and `why` tell. Of VMs the status, and the size where it may have changed; what proved the result stands in the
 * result alone.
 */
function onlyShown({ mark: _mark, lastLook: _look, ...progress }: Progress): Packable {
  const { before, after, already, answer } = progress;
  const isSized = already === true || sizeOf(before) !== sizeOf(after);
  const shownOf = (seen: Seen | undefined) =>
    isVm(seen) ? { status: seen.status, ...(isSized ? { specs: seen.specs } : {}) } : seen;
  const isYes = answer?.class === "accepted";
  return {
    ...progress,
    before: shownOf(before),
    after: shownOf(after),
    ...(isYes ? { answer: { ...answer, status: undefined } } : {}),
  };
}

const isVm = (seen: Seen | undefined): seen is Vm =>
  seen !== undefined && !isList(seen) && "projectId" in seen;
const sizeOf = (seen: Seen | undefined) => isVm(seen) && JSON.stringify(seen.specs);
