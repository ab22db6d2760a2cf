import type { ChangeCommand } from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords, deciderOf, whyOf, isAlready } from "../../core/request/stage.ts";
import { isUnconfirmed } from "../../core/cards/render-result.ts";
import { batches } from "../../redis/batches.ts";
import { undoneBy } from "../../core/request/origin.ts";
import { counted } from "../../messages/markdown.ts";
import { approvalsIn } from "../../core/permit/votes.ts";

const maxOpen = 500;
const maxEnded = 1000;
/** A request made earlier than this before a time had ended by then, or is still open. */
const longestMs = 24 * 3600_000;

export type RequestSource = ReturnType<typeof requestsForDigest>;
export type RequestFact = ReturnType<typeof factOf>;

/** Is told what was read only in part, like `the newest 1,000 requests`. */
type OnCut = (part: string) => void;

/** Reads requests for digests. */
export function requestsForDigest(
  store: Pick<Journal, "openIds" | "recentIds" | "getMany" | "now">,
  commands: readonly ChangeCommand[],
) {
  const toFact = (request: StoredRequest) => factOf(request, commands);

  return {
    async open(onCut?: OnCut) {
      const ids = await store.openIds();
      if (ids.length > maxOpen) onCut?.(`${maxOpen} of ${counted(ids.length, "open request")}`);
      const all = await store.getMany(ids.slice(0, maxOpen));
      return all.map(toFact);
    },

    /** Newest first. */
    async endedSince(at: number, onCut?: OnCut) {
      const ids = await store.recentIds({}, maxEnded);
      const ended: StoredRequest[] = [];
      let isWhole = ids.length < maxEnded;
      for (const batch of batches(ids)) {
        const some = await store.getMany(batch);
        ended.push(...some.filter(({ final, changedAt }) => final && changedAt > at));
        isWhole ||=
          some.length > 0 && some.every(({ record }) => record.createdAt < at - longestMs);
        if (isWhole && ids.length >= maxEnded) break;
      }
      if (!isWhole) onCut?.(`the newest ${counted(maxEnded, "request")}`);
      const asked = ended.filter(
        ({ record, stage }) => record.origin.kind !== "safety" && !isAlready(stage),
      );
      return asked.map(toFact).toSorted((a, b) => b.changedAt - a.changedAt);
    },
  };
}

function factOf(request: StoredRequest, commands: readonly ChangeCommand[]) {
  const { record, state, changedAt, stage, votes } = request;
  const { id, command, target, requester, createdAt, approval } = record;
  const known = commands.find(({ name }) => name === command);
  return {
    id,
    command,
    /** "Restarted", as the command words it, or that its success can't be confirmed. */
    done:
      known && state === "done" && isUnconfirmed(request, known)
        ? `${known.say.verb} accepted, not confirmed:`
        : (known?.say.done ?? `Done: ${command} of`),
    target,
    /** The requester's name: a digest mentions nobody. */
    requester: requester.name,
    state,
    stateWords: stateWords(state),
    createdAt,
    changedAt: stage.state === "unknown" ? stage.since : changedAt,
    isBreakGlass: record.breakGlass === true,
    why: whyOf(stage),
    ...decisionsOf(request, known),
    approval: approval && {
      yes: approvalsIn(votes).length,
      required: approval.required,
      expiresAt: approval.expiresAt,
    },
  };
}

/** Decisions about a request, with people's names and reasons. */
interface Decisions {
  /** Detail as the command words it: `from nightly`. */
  detail?: string | undefined;
  isDestructive?: boolean;
  isUndo?: boolean;
  approvedBy?: readonly string[];
  denied?: { name: string; reason?: string | undefined } | undefined;
  /** Person who recorded an outcome that Gatehouse couldn't know, or canceled the request. */
  decidedBy?: { name: string; reason?: string | undefined } | undefined;
  /** The requester's reason. */
  reason?: string | undefined;
}

function decisionsOf(
  { record, stage, votes }: StoredRequest,
  command: ChangeCommand | undefined,
): Decisions {
  return {
    detail: command?.say.detail?.(record.input, record.labels ?? {}),
    isDestructive: command?.class === "destroy",
    isUndo: undoneBy(record) !== undefined,
    approvedBy: approvalsIn(votes).map((vote) => vote.name),
    denied: votes.find(({ vote }) => vote === "deny"),
    decidedBy: deciderOf(stage),
    reason: record.reason,
  };
}
