import type { Keys, RedisClient } from "../redis.ts";
import type { Anchor } from "./anchors.ts";
import { compareIds, type Entry, genesis, isSealedBy, isStreamId } from "./chain.ts";
import { createTrail, type Trail } from "./trail.ts";
import { judgeChain, type Problem, type Verdict } from "./verdict.ts";
import { createWalk, type Step, type Walk } from "./walk.ts";

const tailPage = 1000;
const tailMost = 100_000;

/**
 * Walks the whole chain in pages and names the first record that is bad (reliability.md U3, U4).
 *
 * `anchors` are heads kept outside Redis: without them a chain that was cut and continued, or written anew by somebody who
 * can write to Redis, looks whole. `from`: begins at this number, and takes the seal before it for granted.
 */
export async function verifyAudit(options: {
  redis: RedisClient;
  key: Keys;
  anchors?: readonly Anchor[];
  trustedKeys?: readonly string[];
  from?: number;
  page?: number;
}): Promise<Verdict> {
  const { redis, key, anchors = [], trustedKeys, from = 1, page = 1000 } = options;
  const trail = createTrail(redis, key);
  const given = await trail.lastGiven();
  const before = from > 1 ? await trail.sealBefore(from) : undefined;
  const walk = createWalk({
    chain: key.namespace,
    before: { seq: from - 1, hash: before?.hash ?? genesis },
    anchors,
    checkpoints: await trail.checkpoints(from),
    ...(trustedKeys ? { trustedKeys } : {}),
  });
  const lastId = await walkPages(trail, walk, { from, behind: before?.id, page });
  const { gone, ...unsealed } = await readTail(trail, walk, lastId, given.id);
  return judgeChain({ ...walk.end(given.seq, gone), unsealed });
}

/** → the id of the last sealed record. */
async function walkPages(
  trail: Trail,
  walk: Walk,
  { from, behind, page }: { from: number; behind: string | undefined; page: number },
): Promise<string | undefined> {
  let id = behind;
  let next = from;
  for (;;) {
    const seals = await trail.seals(next, page);
    // whoever can write to Redis can write anything into a seal
    const last = seals.findLast((seal) => isStreamId(seal.id));
    if (seals.length === 0) return id;
    const [salts, entries] = await Promise.all([
      trail.salts(seals),
      trail.records({ ...(id ? { after: id } : {}), last: last?.id ?? "0-1", most: page * 2 }),
    ]);
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    const steps: Step[] = seals.map((seal) => ({
      seal,
      entry: byId.get(seal.id),
      salt: salts.get(seal.seq),
    }));
    const sealedIds = new Set(seals.map((seal) => seal.id));
    const strangers = entries.filter((entry) => !sealedIds.has(entry.id));
    for (const step of steps) {
      const problem = walk.isStopped
        ? undefined
        : (inserted(step, strangers) ?? swapped(step, steps));
      if (problem) walk.stop(problem);
      walk.step(step);
    }
    id = last?.id ?? id;
    const reached = seals.at(-1)?.seq ?? 0;
    if (reached < next) return id;
    next = reached + 1;
  }
}

function inserted({ seal }: Step, strangers: readonly Entry[]): Problem | undefined {
  const [stranger] = strangers;
  if (!stranger || compareIds(stranger.id, seal.id) > 0) return undefined;
  const says = `a record that nobody sealed stands before record ${seal.seq}`;
  return { seq: seal.seq, id: stranger.id, kind: "inserted", says };
}

/** A record that isn't the one that was sealed here, but the one that was sealed nearby. */
function swapped({ seal, entry, salt }: Step, nearby: readonly Step[]): Problem | undefined {
  if (!entry || isSealedBy(entry, seal, salt)) return undefined;
  const home = nearby.find(
    (other) =>
      other.seal !== seal && isSealedBy({ ...entry, at: other.seal.at }, other.seal, other.salt),
  );
  if (!home) return undefined;
  const says = `the record is the one that was sealed as record ${home.seal.seq}`;
  return { seq: seal.seq, id: seal.id, kind: "swapped", says };
}

/** Reads what waits to be sealed. `given`: the last id that Redis has given to a record, which is `gone` when it isn't there. */
async function readTail(
  trail: Trail,
  walk: Walk,
  after: string | undefined,
  given: string,
): Promise<{ count: number; oldestMs: number; gone?: string }> {
  let count = 0;
  let oldest: number | undefined;
  let id = after;
  for (; count < tailMost;) {
    const entries = await trail.records({ ...(id ? { after: id } : {}), most: tailPage });
    for (const entry of entries) walk.tail(entry.record);
    oldest ??= entries[0] && Number(entries[0].at);
    count += entries.length;
    id = entries.at(-1)?.id ?? id;
    if (entries.length < tailPage) break;
  }
  const isGone = count < tailMost && compareIds(given, id ?? "0-0") > 0;
  const oldestMs = oldest === undefined ? 0 : Math.max(0, (await trail.now()) - oldest);
  return { count, oldestMs, ...(isGone ? { gone: given } : {}) };
}
