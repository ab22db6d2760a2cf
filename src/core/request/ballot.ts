import {
  redisTimeLua,
  type Keys,
  defineScript,
  type RedisClient,
  redisNow,
} from "../../redis/redis.ts";
import { shortFingerprint } from "../permit/fingerprint.ts";
import type { VoteOutcome, VoteProblem, Vote } from "../permit/votes.ts";
import { Trail } from "../../audit/trail.ts";
import { recordPages } from "../../audit/walk.ts";
import { parseRecord } from "../../audit/read-audit.ts";
import { type Pending, pendingList, wakeLua } from "../../redis/pending.ts";
import { hasNoStep, hasStep, keepStep, owesMessages } from "./scripts.ts";
import { stepText } from "./history.ts";
import { auditRecord, keepFinalMs, locksOf } from "./record.ts";
import { noSetbacks } from "./stage.ts";
import { type StoredRequest, denialRecord, voteRecord } from "./stored-request.ts";
import { approvalsIn } from "../permit/votes.ts";

/**
 * Counts one vote, atomically. A denial wins until the claim; the requester never counts; each person
 * has one vote. An approval was judged beside the approvals that were there then. When there are
 * others by now, it is judged again, so that no two of them take the same need.
 *
 * `seen` is the first digits of the fingerprint that the voter saw, `vote` is approve|deny, `step` is
 * for its history when decided, `judgedBeside` is how many approvals it was judged beside, and `facts`
 * are those of an authorized request.
 * → {'counted', n} | {'authorized', n} | {'denied'} | {'refused', why} | {'again'}
 */
const voteScript = `${redisTimeLua}${wakeLua}
local request, audit, pending, open, lock = unpack(KEYS)
local id, seen, voter, vote, voteRecord, auditRecord, step, judgedBeside, facts = unpack(ARGV)
local state, digest, expiresAt, requester, required = unpack(redis.call('HMGET', request, 'state', 'digest', 'expiresAt', 'requester', 'required'))
if not state or not digest or string.len(seen) ~= 16 then return {'refused', 'unknown'} end
if string.sub(digest, 1, string.len(seen)) ~= seen then return {'refused', 'unknown'} end
if requester == voter then return {'refused', 'own'} end
local isDraft = state == 'draft'
if not isDraft and not (state == 'authorized' and vote == 'deny') then return {'refused', 'over'} end
if isDraft and tonumber(expiresAt) <= now then return {'refused', 'expired'} end
local field = 'vote:' .. voter
local before = redis.call('HGET', request, field)
if before then
  if vote == 'approve' or string.find(before, '"vote":"deny"', 1, true) then return {'refused', 'twice'} end
end
local approvals = 0
local all = redis.call('HGETALL', request)
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 5) == 'vote:' and string.find(all[i + 1], '"vote":"approve"', 1, true) then approvals = approvals + 1 end
end
if vote == 'approve' and approvals ~= tonumber(judgedBeside) then return {'again'} end
redis.call('HSET', request, field, voteRecord)
redis.call('XADD', audit, '*', 'at', now, 'record', auditRecord)
redis.call('HINCRBY', request, 'revision', 1)
${owesMessages("pending", "id")}
if vote == 'deny' then
  redis.call('HSET', request, 'state', 'denied', 'stage', '{}', 'final', '1', 'changedAt', now)
  ${keepStep("step")}
  redis.call('ZREM', open, id)
  ${hasNoStep("pending", "id")}
  if redis.call('GET', lock) == id then redis.call('DEL', lock) end
  redis.call('PEXPIRE', request, ${keepFinalMs})
  return {'denied'}
end
approvals = approvals + 1
if approvals < tonumber(required) then return {'counted', approvals} end
redis.call('HSET', request, 'state', 'authorized', 'stage', facts, 'changedAt', now)
${keepStep("step")}
${hasStep("pending", "id")}
return {'authorized', approvals}
`;

/**
 * Records why somebody denied it, once, and from that person alone.
 *
 * → 1 when it is written down
 */
const reasonScript = `${redisTimeLua}${wakeLua}
local request, audit, pending = unpack(KEYS)
local id, voter, denial, auditRecord = unpack(ARGV)
local vote = redis.call('HGET', request, 'vote:' .. voter)
if not vote or not string.find(vote, '"vote":"deny"', 1, true) then return 0 end
if redis.call('HSETNX', request, 'denial', denial) == 0 then return 0 end
redis.call('HINCRBY', request, 'revision', 1)
redis.call('XADD', audit, '*', 'at', now, 'record', auditRecord)
${owesMessages("pending", "id")}
return 1
`;

const pageSize = 200;
/**
 * Pages of the trail that are searched at most: a vote and its record are written by one script, so
 * the record can't be far away.
 */
const maxPages = 50;
/** Redis numbers audit records by its own clock, which may have been set back since (ms). */
const clockSlackMs = 1_000;

/** Counts votes. Policy has decided before whether the voter may vote at all. */
export function createBallot(
  redis: RedisClient,
  key: Keys,
  { outbox, steps }: Record<"outbox" | "steps", Pick<Pending, "wake">>,
) {
  const trail = new Trail(redis, key);
  const runVote = defineScript(redis, "gatehouseVote", voteScript);
  const runReason = defineScript(redis, "gatehouseReason", reasonScript);

  async function isInTrail({ record }: StoredRequest, vote: Vote): Promise<boolean> {
    const digest = shortFingerprint(record.approval?.digest ?? "");
    const wanted = { request: record.id, who: vote.voterId, vote: "approve", digest };
    const isWanted = (candidate: Readonly<Record<string, unknown>>) =>
      Object.entries(wanted).every(([field, value]) => candidate[field] === value);
    const from = `${Math.max(record.createdAt, vote.at) - clockSlackMs}`;
    let pages = 0;
    for await (const page of recordPages(trail, from, pageSize)) {
      if (page.map(parseRecord).some(isWanted)) return true;
      pages += 1;
      if (pages === maxPages) break;
    }
    return false;
  }

  return {
    /**
     * Finds approvals without an audit record. One script writes a vote together with its record,
     * so an approval without one was forged in Redis.
     */
    async votesNotInTrail(request: StoredRequest): Promise<readonly Vote[]> {
      const approvals = approvalsIn(request.votes);
      const areInTrail = await Promise.all(approvals.map((vote) => isInTrail(request, vote)));
      return approvals.filter((_, index) => !areInTrail[index]);
    },

    /**
     * Records why somebody denied a request. Resolves with false when this person didn't deny it,
     * or gave a reason before.
     */
    async giveReason({ record }: StoredRequest, voterId: string, reason: string): Promise<boolean> {
      const keys = [key("request", record.id), key("audit"), pendingList(key)];
      const audit = auditRecord(record, { vote: "deny", why: reason }, voterId);
      const args = [record.id, voterId, denialRecord.write({ by: voterId, reason }), audit];
      const given = (await runReason(keys, args)) === 1;
      outbox.wake(record.id);
      return given;
    },

    /**
     * Counts one vote on the request as it was read when the vote was judged. `seen` is the start
     * of the fingerprint on the voter's button, and `meets` has the numbers of the needs that an
     * approval of this voter counts for.
     */
    async vote(
      request: StoredRequest,
      voter: { id: string; name: string },
      vote: "approve" | "deny",
      seen: string,
      meets?: readonly number[],
    ): Promise<VoteOutcome> {
      const { record, votes } = request;
      const digest = record.approval?.digest ?? "";
      const known = meets ? { meets } : {};
      const at = await redisNow(redis);
      const entry = { voterId: voter.id, name: voter.name, vote, digest, ...known, at };
      const [state, verb] = vote === "deny" ? ["denied", "denied"] : ["authorized", "approved"];
      const [outcome, more] = (await runVote(
        [
          key("request", record.id),
          key("audit"),
          pendingList(key),
          key("requests", "open"),
          key("lock", locksOf(record).take),
        ],
        [
          record.id,
          seen,
          voter.id,
          vote,
          voteRecord.write(entry),
          auditRecord(record, { vote, digest: shortFingerprint(digest) }, voter.id),
          stepText({ state, why: `${verb} by ${voter.id}`, actor: voter.id }),
          approvalsIn(votes).length,
          JSON.stringify({ setbacks: noSetbacks }),
        ],
      )) as [string, string | number | undefined];
      outbox.wake(record.id);
      if (outcome === "authorized") steps.wake(record.id);
      if (outcome === "denied" || outcome === "again") return { result: outcome };
      if (outcome === "counted" || outcome === "authorized")
        return { result: outcome, approvals: Number(more) };
      return { result: "refused", why: more as VoteProblem };
    },
  };
}
