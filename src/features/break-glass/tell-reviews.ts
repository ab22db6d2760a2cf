import { readAudit } from "../../audit/trail.ts";
import { type Markdown, md, name, dayAndTime, withFullStop } from "../../messages/markdown.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { Target } from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import { isAlready, stateWords } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import type { DigestPart, ReadPart } from "../digest-part.ts";
import { type Review, type Reviews, asksForReview, signReviewButton } from "./reviews.ts";

/** A use of break-glass whose review nobody has signed. */
export interface UnsignedReview extends Pick<Review, "request" | "command" | "target" | "at"> {
  /** Undefined when the request is no longer kept. */
  on: Target | undefined;
  /** The name of the requester. */
  by?: string | undefined;
  reason?: string;
  /** In words, of a request that ended since the last digest. */
  outcome?: string | undefined;
}

/** Who signed the review of a request. */
export interface SignedReview {
  request: string;
  by: string;
  at: number;
}

/** Signatures of a busy day; older ones aren't read. */
const maxRecords = 1_000;

/** Asks in each digest for the reviews that nobody has signed, and says of other uses who signed theirs. */
export function reviewsInDigests(on: {
  redis: RedisClient;
  key: Keys;
  store: Pick<Journal, "getMany">;
  reviews: Pick<Reviews, "unsigned">;
  personName(userId: string): Promise<string>;
}): DigestPart {
  async function unsignedSince(since: number): Promise<UnsignedReview[]> {
    const all = await on.reviews.unsigned();
    const requests = await on.store.getMany(all.map(({ request }) => request));
    const made = new Map(requests.map((request) => [request.record.id, request]));
    return all.map(({ by: _id, ...review }) => {
      const request = made.get(review.request);
      const { target, requester } = request?.record ?? {};
      const outcome = request && outcomeSince(request, since);
      return { ...review, on: target, by: requester?.name, outcome };
    });
  }

  async function signedSince(since: number): Promise<SignedReview[]> {
    const { redis, key, personName } = on;
    const what = ["review-signed"];
    const { entries } = await readAudit({ redis, key, what, after: since, most: maxRecords });
    const signed = entries.map(async ({ at, record: { request, who } }) => ({
      request: String(request),
      by: await personName(String(who)),
      at,
    }));
    return Promise.all(signed);
  }

  return {
    name: "break-glass reviews",
    async read({ only, since }) {
      const unsigned = only(unsignedSince(since), (review) => review.on);
      return reviewLines(await unsigned, await signedSince(since));
    },
  };
}

function outcomeSince({ final, changedAt, state, stage }: StoredRequest, since: number) {
  return final && changedAt > since && !isAlready(stage) ? stateWords(state) : undefined;
}

/** Pure. */
export function reviewLines(
  unsigned: readonly UnsignedReview[],
  signed: readonly SignedReview[],
): ReadPart {
  const lines = unsigned.map((review) => ({
    key: review.request,
    text: md`🚨 ${unapprovedWords(review)} ${asksForReview}`,
    button: signReviewButton(review.request, `${review.command} ${review.target}`),
  }));
  const words = ["review to sign", "reviews to sign"] as const;
  return {
    all: [{ kind: "review", words, place: "review", isLasting: true, lines }],
    tellsOf: new Set(unsigned.map(({ request }) => request)),
    adds: new Map(
      signed.map(({ request, by, at }) => [request, md`Review signed by ${by} ${dayAndTime(at)}.`]),
    ),
  };
}

function unapprovedWords({ command, target, at, by, reason, outcome }: UnsignedReview): Markdown {
  const why = reason ? md`: “${reason}”` : "";
  const ended = outcome === undefined ? "" : ` Outcome: ${outcome}.`;
  const ran = md`*${command}* ${name(target)} ran without approval ${dayAndTime(at)}`;
  return md`${withFullStop(md`${ran}${by ? `, requested by ${by}` : ""}${why}`)}${ended}`;
}
