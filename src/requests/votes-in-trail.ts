import { shortDigest } from "../approvals/digest.ts";
import type { Vote } from "../approvals/votes.ts";
import type { Keys, RedisClient } from "../redis.ts";
import type { StoredRequest } from "./record.ts";

const page = 200;
/** A busy trail grows by far less between a vote and its record, which are written in one script. */
const mostPages = 50;
/** Redis numbers records by its own clock, which may have been set back since. */
const clockSlackMs = 1_000;

/**
 * Approvals that the audit trail knows nothing of. A vote and its record are written in one script, so such a vote was
 * put into the journal by hand.
 */
export function createVoteCheck(redis: RedisClient, key: Keys) {
  async function isInTrail(request: StoredRequest, vote: Vote): Promise<boolean> {
    const { id, createdAt, approval } = request.record;
    const digest = shortDigest(approval?.digest ?? "");
    let from = String(Math.max(createdAt, vote.at) - clockSlackMs);
    for (let pages = 0; pages < mostPages; pages += 1) {
      const rows = await redis.xrange(key("audit"), from, "+", "COUNT", page);
      for (const [, fields] of rows) {
        const record = recordIn(fields);
        if (record["request"] !== id || record["who"] !== vote.voterId) continue;
        if (record["vote"] === "approve" && record["digest"] === digest) return true;
      }
      const last = rows.at(-1)?.[0];
      if (rows.length < page || last === undefined) return false;
      from = `(${last}`;
    }
    return false;
  }

  return {
    async votesNotInTrail(request: StoredRequest): Promise<readonly Vote[]> {
      const approvals = request.votes.filter(({ vote }) => vote === "approve");
      const found = await Promise.all(approvals.map((vote) => isInTrail(request, vote)));
      return approvals.filter((_, index) => !found[index]);
    },
  };
}

function recordIn(fields: readonly string[]): Record<string, unknown> {
  const text = fields[fields.indexOf("record") + 1] ?? "";
  try {
    const record: unknown = JSON.parse(text);
    return typeof record === "object" && record !== null ? { ...record } : {};
  } catch {
    return {};
  }
}
