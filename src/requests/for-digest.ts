import { readAudit } from "../audit/read.ts";
import type { ConsoleFact, RequestFact, RequestSource } from "../digests/items.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { type StoredRequest, stateWords } from "./journal/record.ts";
import type { Journal } from "./journal/journal.ts";

const maxOpen = 500;
const maxEnded = 1000;
const readAtOnce = 100;
/** A request older than this, relative to the time in question, ended before it or is still open. */
const longestMs = 24 * 3600_000;
/** Consoles last minutes, so the newest records hold them. */
const newestRecords = 1000;
const notSent = new Set(["draft", "authorized"]);

export function requestsForDigest(
  store: Pick<Journal, "openIds" | "recentIds" | "getMany" | "openReviews" | "now">,
  redis: RedisClient,
  key: Keys,
  commands: readonly ChangeCommand[],
): RequestSource {
  const toFact = (request: StoredRequest) => factOf(request, commands);

  return {
    async open() {
      const all = await store.getMany((await store.openIds()).slice(0, maxOpen));
      return all.map(toFact);
    },

    async endedSince(at) {
      const ids = await store.recentIds({}, maxEnded);
      const ended: StoredRequest[] = [];
      for (let from = 0; from < ids.length; from += readAtOnce) {
        const some = await store.getMany(ids.slice(from, from + readAtOnce));
        ended.push(...some.filter(({ final, changedAt }) => final && changedAt > at));
        if (some.length > 0 && some.every(({ record }) => record.createdAt < at - longestMs)) break;
      }
      const asked = ended.filter(
        ({ record, progress }) => record.via !== "safety" && !progress.already,
      );
      return asked.map(toFact).toSorted((a, b) => b.changedAt - a.changedAt);
    },

    async reviews() {
      const reviews = await store.openReviews();
      const requests = await store.getMany(reviews.map(({ request }) => request));
      const targets = new Map(requests.map(({ record }) => [record.id, record.target]));
      return reviews.map((review) => ({ ...review, on: targets.get(review.request) }));
    },

    async touched(vm, since) {
      const ids = await Promise.all(
        [vm.id, vm.projectId].map((targetId) => store.recentIds({ targetId }, 20)),
      );
      const requests = await store.getMany(ids.flat());
      return requests.some(({ final, state, changedAt }) =>
        final ? changedAt > since : !notSent.has(state),
      );
    },

    async consoles(now) {
      const { entries } = await readAudit({ redis, key, most: newestRecords });
      return entries.flatMap(({ record }) => {
        const fact = consoleOf(record);
        return fact && fact.until > now ? [fact] : [];
      });
    },
  };
}

function consoleOf(record: Readonly<Record<string, unknown>>): ConsoleFact | undefined {
  const { what, who, until, target } = record;
  if (what !== "console" || typeof until !== "number" || typeof who !== "string") return undefined;
  const { id = "", name = "?" } = (target ?? {}) as { id?: unknown; name?: unknown };
  return { vm: String(name), vmId: String(id), by: who, until };
}

function factOf(
  { record, state, changedAt, progress, votes }: StoredRequest,
  commands: readonly ChangeCommand[],
): RequestFact {
  const { id, command, target, requester, createdAt, approval } = record;
  const known = commands.find(({ name }) => name === command);
  // the answer is the only proof there can be, and it held none
  const isUnconfirmed =
    state === "done" &&
    known?.effect.provenBy &&
    !progress.answer?.snapshotId &&
    !progress.decidedBy;
  return {
    id,
    command,
    done: isUnconfirmed
      ? `${known.say.verb} accepted, not confirmed:`
      : (known?.say.done ?? `Done: ${command} of`),
    target,
    requester: requester.name,
    state,
    stateWords: stateWords(state),
    createdAt,
    changedAt: (state === "unknown" ? progress.unknownSince : undefined) ?? changedAt,
    ...(progress.why ? { why: progress.why } : {}),
    ...(approval
      ? {
          approval: {
            yes: votes.filter(({ vote }) => vote === "approve").length,
            required: approval.required,
            expiresAt: approval.expiresAt,
          },
        }
      : {}),
  };
}
