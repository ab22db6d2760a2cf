import { shortDigest } from "../approvals/digest.ts";
import type { VoteOutcome, VoteProblem } from "../approvals/votes.ts";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import { auditRecord, keepFinalMs } from "./journal-entry.ts";
import type { StoredRequest } from "./record.ts";
import { locksOf } from "./record.ts";
import { vote as voteScript } from "./vote-script.ts";
import { createVoteCheck } from "./votes-in-trail.ts";

/** Takes votes. Whether the voter may vote at all is decided before, by policy over who they are right now. */
export function createBallot(redis: RedisClient, key: Keys) {
  const runVote = defineScript(redis, "gatehouseVote", voteScript);
  return {
    ...createVoteCheck(redis, key),

    /** `seen` are the digits of the digest that the voter's button carried. */
    async vote(
      request: StoredRequest,
      voter: { id: string; name: string },
      vote: "approve" | "deny",
      seen: string,
    ): Promise<VoteOutcome> {
      const { record } = request;
      const digest = record.approval?.digest ?? "";
      const entry = { voterId: voter.id, name: voter.name, vote, digest };
      const decided =
        vote === "deny"
          ? { state: "denied", why: `denied by ${voter.id}`, actor: voter.id }
          : { state: "authorized", why: `approved by ${voter.id}`, actor: voter.id };
      const answer = (await runVote(
        [
          key("request", record.id),
          key("request", record.id, "history"),
          key("audit"),
          key("outbox"),
          key("requests", "open"),
          key("lock", locksOf(record).take),
        ],
        [
          record.id,
          seen,
          voter.id,
          vote,
          JSON.stringify({ ...entry, at: "__AT__" }).replace('"__AT__"', "__AT__"),
          auditRecord(record, { vote, digest: shortDigest(digest) }, voter.id),
          JSON.stringify(decided),
          keepFinalMs,
        ],
      )) as [string, string | number | undefined];
      switch (answer[0]) {
        case "counted":
          return { is: "counted", approvals: Number(answer[1]) };
        case "authorized":
          return { is: "authorized", approvals: Number(answer[1]) };
        case "denied":
          return { is: "denied" };
        default:
          return { is: "refused", why: answer[1] as VoteProblem };
      }
    },
  };
}
