import { tellAct } from "../../core/cards/tell-act.ts";
import { type Markdown, md, name, dayAndTime } from "../../messages/markdown.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import type { DigestPart, ReadPart } from "../digest-part.ts";
import { type Review, type Reviews, asksForReview, signReviewButton } from "./reviews.ts";

/** A use of break-glass whose review nobody has signed. */
export interface UnsignedReview extends Pick<Review, "request" | "command" | "target" | "at"> {
  /** Undefined when the request is no longer kept. */
  on: Target | undefined;
  text: Markdown;
}

/** Asks in each digest for the reviews that nobody has signed. */
export function reviewsInDigests(on: {
  store: Pick<Journal, "getMany">;
  changes: readonly ChangeCommand[];
  reviews: Pick<Reviews, "unsigned">;
}): DigestPart {
  async function unsigned(): Promise<UnsignedReview[]> {
    const all = await on.reviews.unsigned();
    const requests = await on.store.getMany(all.map(({ request }) => request));
    const made = new Map(requests.map((request) => [request.record.id, request]));
    return all.map(({ by: _id, ...review }) => {
      const request = made.get(review.request);
      const text = request ? requestWords(request, on.changes) : goneWords(review);
      return { ...review, on: request?.record.target, text };
    });
  }

  return {
    name: "break-glass reviews",
    read: async ({ only }) => reviewLines(await only(unsigned(), (review) => review.on)),
  };
}

/** Pure. */
function reviewLines(unsigned: readonly UnsignedReview[]): ReadPart {
  const lines = unsigned.map(({ request, command, target, text }) => ({
    key: request,
    text: md`${text} ${asksForReview}`,
    button: signReviewButton(request, `${command} ${target}`),
  }));
  const words = ["review to sign", "reviews to sign"] as const;
  return {
    all: [{ kind: "review", words, place: "review", isLasting: true, lines }],
    tellsOf: new Set(unsigned.map(({ request }) => request)),
  };
}

function requestWords(request: StoredRequest, changes: readonly ChangeCommand[]): Markdown {
  const { command, createdAt } = request.record;
  const known = changes.find((candidate) => candidate.name === command);
  return md`${dayAndTime(createdAt)} ${tellAct(request, known, { asksForReview: true })}`;
}

const goneWords = ({ command, target, at, reason }: Omit<Review, "by">): Markdown =>
  md`${dayAndTime(at)} 🚨 *${command}* ${name(target)} ran without approval${reason ? md`: “${reason}”` : ""}.`;
