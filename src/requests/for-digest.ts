import { readAudit } from "../audit/read.ts";
import type { ConsoleFact, RequestFact, RequestSource } from "../digests/facts.ts";
import type { Keys, RedisClient } from "../redis.ts";
import type { StoredRequest } from "./record.ts";
import type { Store } from "./store.ts";

const mostOpen = 500;
const mostEnded = 1000;
const readAtOnce = 100;
/** A request that was asked for longer before the time in question has ended before it, or is still open. */
const longestMs = 24 * 3600_000;
/** Consoles live for minutes: theirs are among the newest records. */
const newestRecords = 1000;
const notSent = new Set(["draft", "authorized"]);

/** Requests as digests tell of them. */
export function requestsForDigest(
  store: Pick<Store, "openIds" | "recentIds" | "getMany" | "openReviews" | "now">,
  redis: RedisClient,
  key: Keys,
): RequestSource {
  return {
    async open() {
      const all = await store.getMany((await store.openIds()).slice(0, mostOpen));
      return all.map(factOf);
    },

    async endedSince(at) {
      const ids = await store.recentIds({}, mostEnded);
      const ended: StoredRequest[] = [];
      for (let from = 0; from < ids.length; from += readAtOnce) {
        const some = await store.getMany(ids.slice(from, from + readAtOnce));
        ended.push(...some.filter(({ final, changedAt }) => final && changedAt > at));
        if (some.length > 0 && some.every(({ record }) => record.createdAt < at - longestMs)) break;
      }
      const asked = ended.filter(
        ({ record, progress }) => record.via !== "safety" && !progress.already,
      );
      return asked.map(factOf).toSorted((a, b) => b.changedAt - a.changedAt);
    },

    async reviews() {
      const open = await store.openReviews();
      return open.map(({ request, command, target, by, at }) => ({
        request,
        command,
        target,
        by,
        at,
      }));
    },

    async touched(vm, since) {
      const ids = await Promise.all(
        [vm.id, vm.projectId].map((targetId) => store.recentIds({ targetId }, 20)),
      );
      const requests = await store.getMany(ids.flat());
      return requests.some(
        ({ final, state, changedAt }) =>
          (!final && !notSent.has(state)) || (final && changedAt > since),
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
  const vm = typeof target === "object" && target !== null && "name" in target ? target.name : "?";
  return { vm: String(vm), by: who, until };
}

function factOf({ record, state, changedAt, progress, votes }: StoredRequest): RequestFact {
  const { id, command, target, requester, createdAt, approval } = record;
  return {
    id,
    command,
    target,
    requester: requester.name,
    state,
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
