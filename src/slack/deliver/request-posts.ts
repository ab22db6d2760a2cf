import type { Markdown } from "../../messages/text.ts";
import { needsOf } from "../../policy/vote-needs.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Delivered, StoredRequest } from "../../requests/journal/record.ts";
import {
  cardVersion,
  cardViewOf,
  isChannel,
  isDecidedElsewhere,
  isExpiredUnapproved,
  noticesDue,
  unknownNotices,
} from "../../requests/render/card-view.ts";
import { renderCard, renderEnded } from "../../requests/render/render-card.ts";
import {
  cameFrom,
  renderAnswer,
  renderAnswered,
  renderAsked,
  renderExpired,
  renderUnknownElsewhere,
  teamClosedLine,
} from "../../requests/render/render-elsewhere.ts";
import { renderNotice } from "../../requests/render/render-result.ts";
import type { Web } from "../web.ts";
import { linkTo as permalinkOf } from "./permalink.ts";
import { isSaid, type OwedPost } from "./post-once.ts";

const maxKept = 1_000;

/** A message of a request, wherever it goes. */
export type Post = Omit<OwedPost, "mark" | "place" | "closed">;

interface RequestPosts {
  card: Post;
  /** In its thread. */
  notices: readonly Post[];
  /** Where it was requested, when its card is elsewhere. */
  asked: Post;
  answer: Post;
  /** An unknown outcome and its reminders, where its card is not. */
  unknown: readonly Post[];
  /** In a direct message. */
  expired: readonly Post[];
}

/** What a request has to say: which of it goes where is decided in `requests.ts`. */
export function createRequestPosts(options: {
  web: Web;
  /** Says who may approve where nothing else does. */
  policy: Parameters<typeof needsOf>[0];
  /** Added to a result: whether the VM is attested again. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<Markdown | undefined>;
  /** Slack has the results of these requests. */
  onTold(requests: readonly StoredRequest[]): void;
  at(point: "link" | "post", request: string): Promise<void>;
}) {
  const links = new Map<string, string>();

  /** Asked of Slack once: it never changes, and what waits for its turn is rendered each time. */
  async function linkTo(message: Delivered["card"]): Promise<string | undefined> {
    const at = message ? `${message.channelId} ${message.ts}` : "";
    const link = links.get(at) ?? (await permalinkOf(message, options));
    if (links.size >= maxKept) links.clear();
    if (link !== undefined) links.set(at, link);
    return link;
  }

  /** Mentioned on its card: those who may decide, by group. */
  function approversOf({ record: { approval } }: StoredRequest): readonly string[] {
    if (!approval) return [];
    return [...new Set(needsOf(options.policy, approval).flatMap(({ from }) => from))];
  }

  /** On a card in the channel of a team, or one that should be there. */
  async function placeOf(request: StoredRequest): Promise<Parameters<typeof renderCard>[3]> {
    const { delivered } = request;
    if (isDecidedElsewhere(request))
      return {
        from: cameFrom(request, isLinked(request) ? await linkTo(delivered.asked) : undefined),
      };
    return delivered.isTeamClosed ? { note: teamClosedLine(request) } : {};
  }

  return (
    request: StoredRequest,
    command: ChangeCommand,
    join: () => Promise<boolean>,
  ): RequestPosts => {
    const { delivered, record, state, final } = request;
    const { said, fallback } = delivered;
    const isElsewhere = isDecidedElsewhere(request);
    const note = () => options.attestationNote(request, command);
    const onTold = () => options.onTold([request]);
    const isDecision = state === "draft" || state === "unknown";
    const urgency = isDecision ? "decision" : final ? "result" : "card";
    // A response URL takes five messages, and shows none twice
    const isWholeHere = final && fallback !== "response-url";
    const isWhole = isElsewhere ? final : isWholeHere;
    const isLast = cardViewOf(request) === "ended";
    // One message says both: what is posted now, or was, and found again after its answer was lost
    const holds = (card: string, result: string) =>
      !isSaid(said[card]) || said[card] === said[result];
    return {
      card: {
        key: "card",
        async render() {
          const place = await placeOf(request);
          return isWhole && holds("card", "result")
            ? renderEnded(request, command, await note(), place)
            : renderCard(request, command, approversOf(request), place);
        },
        shows: {
          field: "face",
          before: delivered.cardView ?? "",
          now: `${cardVersion(request)}${isLinked(request) ? " linked" : ""}`,
          standsAt: delivered.card,
          isLast,
        },
        urgency,
        covers: isWhole ? ["result"] : [],
        onSaid: isWhole && !isElsewhere ? onTold : undefined,
        join: mayShare(request, command) ? join : undefined,
      },
      notices: noticesDue(request).map((notice) => ({
        key: notice,
        async render() {
          await options.at("post", record.id);
          const noted = notice === "result" ? await note() : undefined;
          return renderNotice(notice, request, command, noted);
        },
        urgency: notice === "result" ? "result" : "decision",
        onSaid: notice === "result" && !isElsewhere ? onTold : undefined,
      })),
      asked: {
        key: "asked",
        async render() {
          await options.at("link", record.id);
          const link = await linkTo(delivered.card);
          return isWholeHere && holds("asked", "answer")
            ? renderAnswered(request, command, await note(), link)
            : renderAsked(request, command, link);
        },
        shows: {
          field: "asked-face",
          before: delivered.askedView ?? "",
          now: cardVersion(request),
          standsAt: delivered.asked,
          isLast,
        },
        urgency,
        covers: isWholeHere ? ["answer"] : [],
        onSaid: isWholeHere ? onTold : undefined,
      },
      answer: {
        key: "answer",
        render: async () => renderAnswer(request, command, await note()),
        urgency: "result",
        onSaid: onTold,
      },
      unknown: unknownNotices(request).map((notice) => ({
        key: notice === "unknown" ? "unknown-elsewhere" : `${notice}-elsewhere`,
        render: async () =>
          renderUnknownElsewhere(notice, request, command, await linkTo(delivered.card)),
        urgency: "decision",
      })),
      expired: once(isExpiredUnapproved(request), {
        key: "expired",
        render: async () => renderExpired(request, command, await linkTo(delivered.card)),
      }),
    };
  };
}

const once = (isDue: boolean, post: Post): readonly Post[] => (isDue ? [post] : []);

/** Its card names the message where it was requested, which others see too. */
function isLinked(request: StoredRequest): boolean {
  const { record, delivered } = request;
  return (
    isDecidedElsewhere(request) && delivered.asked !== undefined && isChannel(record.channelId)
  );
}

/** Not where a person must decide or open something, nor what must stand out, nor what is told in two places. */
function mayShare(request: StoredRequest, command: ChangeCommand): boolean {
  const { record, state, delivered } = request;
  const { fallback, isAlone } = delivered;
  if (fallback !== undefined || isAlone || record.breakGlass) return false;
  if (isDecidedElsewhere(request)) return false;
  return state !== "draft" && state !== "unknown" && command.class !== "secret";
}
