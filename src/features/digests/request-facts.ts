import { readAudit } from "../../audit/trail.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords, deciderOf, whyOf, isAlready } from "../../core/request/stage.ts";
import { isUnconfirmed } from "../../core/cards/render-result.ts";
import { batches } from "../../redis/batches.ts";
import { undoneBy } from "../../core/request/origin.ts";

const maxOpen = 500;
const maxEnded = 1000;
/** A request made earlier than this before a time had ended by then, or is still open. */
const longestMs = 24 * 3600_000;
/** Consoles last minutes, so they are among the newest records. */
const newestRecords = 1000;

export type RequestSource = ReturnType<typeof requestsForDigest>;
export type RequestFact = ReturnType<typeof factOf>;
export type ConsoleFact = NonNullable<ReturnType<typeof consoleOf>>;
export type ReviewFact = Awaited<ReturnType<RequestSource["reviews"]>>[number];

/** A use of break-glass whose review nobody has signed. */
interface OpenReview {
  request: string;
  command: string;
  target: string;
  /** Undefined when the request is no longer kept. */
  on: Target | undefined;
  at: number;
  /** The name of the requester. */
  by?: string | undefined;
  reason?: string;
}

/** Reads requests for digests. */
export function requestsForDigest(
  store: Pick<Journal, "openIds" | "recentIds" | "getMany" | "openReviews" | "now">,
  redis: RedisClient,
  key: Keys,
  commands: readonly ChangeCommand[],
) {
  const toFact = (request: StoredRequest) => factOf(request, commands);

  return {
    async open() {
      const all = await store.getMany((await store.openIds()).slice(0, maxOpen));
      return all.map(toFact);
    },

    /** Newest first. */
    async endedSince(at: number) {
      const ids = await store.recentIds({}, maxEnded);
      const ended: StoredRequest[] = [];
      for (const batch of batches(ids)) {
        const some = await store.getMany(batch);
        ended.push(...some.filter(({ final, changedAt }) => final && changedAt > at));
        if (some.length > 0 && some.every(({ record }) => record.createdAt < at - longestMs)) break;
      }
      const asked = ended.filter(
        ({ record, stage }) => record.origin.kind !== "safety" && !isAlready(stage),
      );
      return asked.map(toFact).toSorted((a, b) => b.changedAt - a.changedAt);
    },

    async reviews(): Promise<OpenReview[]> {
      const reviews = await store.openReviews();
      const requests = await store.getMany(reviews.map(({ request }) => request));
      const records = new Map(requests.map(({ record }) => [record.id, record]));
      return reviews.map(({ request, command, target, at, reason }) => {
        const made = records.get(request);
        const by = made?.requester.name;
        return { request, command, target, on: made?.target, at, by, reason };
      });
    },

    /** Consoles that were opened through Gatehouse and haven't expired. */
    async consoles(now: number) {
      const { entries } = await readAudit({ redis, key, most: newestRecords });
      return entries.flatMap(({ record }) => {
        const fact = consoleOf(record);
        return fact && fact.until > now ? [fact] : [];
      });
    },
  };
}

function consoleOf(record: Readonly<Record<string, unknown>>) {
  const { what, who, until, target } = record;
  if (what !== "console" || typeof until !== "number" || typeof who !== "string") return undefined;
  const { id = "", name = "?" } = (target ?? {}) as { id?: unknown; name?: unknown };
  return { vm: String(name), vmId: String(id), by: who, until };
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
      yes: votes.filter(({ vote }) => vote === "approve").length,
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
    approvedBy: votes.filter(({ vote }) => vote === "approve").map((vote) => vote.name),
    denied: votes.find(({ vote }) => vote === "deny"),
    decidedBy: deciderOf(stage),
    reason: record.reason,
  };
}
