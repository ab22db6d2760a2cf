import { context } from "../../messages/message.ts";
import { md, type Markdown } from "../../messages/text.ts";
import { workOnRequest } from "../../log/ids.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import { sharedCardOf } from "../../requests/journal/shared-cards.ts";
import { cardVersion, cardViewOf, hasNoCard, noticesDue } from "../../requests/render/card-view.ts";
import { renderCard, renderEnded } from "../../requests/render/render-card.ts";
import { renderNotice } from "../../requests/render/render-result.ts";
import type { Owes, Source } from "./deliver.ts";
import { isSaid, type Owed, type OwedPost } from "./post-once.ts";
import { openResponseUrl, postResponse } from "./response-url.ts";

/** A response URL works for half an hour; a minute is kept in reserve. */
const responseUrlMs = 29 * 60_000;

/**
 * The messages of requests: a card that is edited, and in its thread the notices, in order. One that ended before its card was
 * posted has one message for all; and where the channel takes no card now, the request joins a shared one, unless a person must
 * decide about it. Where the channel is closed to the bot: the response URL, else a direct message, else nothing.
 */
export function requestSource(options: {
  store: Journal;
  commands: readonly ChangeCommand[];
  /** Mentioned when a request waits for approval: ids of people and groups. */
  readonly approvers: readonly string[];
  /** Called at least once for each ended request, before its result is posted. */
  recordResults(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /** Called at least once for each request whose own messages say that it ended, or that its outcome is unknown. */
  tellElsewhere(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /** Added to a result: whether the VM is attested again. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<Markdown | undefined>;
  visibilityTimeoutMs: number;
  /** Slack has the results of these requests. */
  onTold(requests: readonly StoredRequest[]): void;
  /** Opens response URLs, and says which are Slack's. */
  botToken: string;
  apiUrl: string;
  at(point: "post" | "posting" | "posted" | "join", request: string): Promise<void>;
}): Source {
  const { store } = options;
  const { outbox } = store;

  async function read(id: string): Promise<Owes | undefined> {
    const request = await store.get(id);
    const command = options.commands.find(({ name }) => name === request?.record.command);
    if (!request || !command) return undefined;
    const { said, fallback } = request.delivered;
    if (request.final && said["afterwards"] === undefined) {
      await options.recordResults(request, command);
      await outbox.remember(id, { "said:afterwards": "1" });
    }
    if (request.state === "draft" && fallback && isSaid(said["card"])) {
      await cancelUnapprovable(request);
      return read(id);
    }
    const { revision, record } = request;
    const sharedId = sharedCardOf(request);
    if (sharedId !== undefined && request.state === "unknown") {
      await store.sharedCards.leave(id, sharedId);
      return read(id);
    }
    if (sharedId !== undefined) await store.sharedCards.touch(sharedId);
    const isSaidElsewhere = sharedId !== undefined || hasNoCard(request);
    const messages = isSaidElsewhere ? [] : owedOf(request, command);
    if (messages.every(({ mark }) => isSaid(mark))) await options.tellElsewhere(request, command);
    return { createdAt: record.createdAt, revision, messages, work: workOnRequest(record) };
  }

  function owedOf(request: StoredRequest, command: ChangeCommand): Owed[] {
    const { delivered, record, state, final } = request;
    const note = () => options.attestationNote(request, command);
    const onTold = () => options.onTold([request]);
    const isDecision = state === "draft" || state === "unknown";
    // A response URL takes five messages, and shows none twice
    const isWhole = final && delivered.fallback !== "response-url";
    const card = owed(request, {
      key: "card",
      render: async () =>
        isWhole && !isSaid(delivered.said["card"])
          ? renderEnded(request, command, await note())
          : renderCard(request, command, options.approvers),
      shows: {
        field: "face",
        before: delivered.cardView ?? "",
        now: cardVersion(request),
        standsAt: delivered.card,
        isLast: cardViewOf(request) === "ended",
      },
      urgency: isDecision ? "decision" : final ? "result" : "card",
      covers: isWhole ? ["result"] : [],
      onSaid: isWhole ? onTold : undefined,
      join: mayShare(request, command)
        ? async () => {
            const isJoined = await store.sharedCards.join(record.id, placeOf(request));
            await options.at("join", record.id);
            return isJoined;
          }
        : undefined,
    });
    const notices = noticesDue(request).map((notice) =>
      owed(request, {
        key: notice,
        async render() {
          await options.at("post", record.id);
          return renderNotice(
            notice,
            request,
            command,
            notice === "result" ? await note() : undefined,
          );
        },
        urgency: notice === "result" ? "result" : "decision",
        onSaid: notice === "result" ? onTold : undefined,
      }),
    );
    return [card, ...notices];
  }

  function owed(
    request: StoredRequest,
    { shows, ...post }: Omit<OwedPost, "mark" | "place" | "closed">,
  ): Owed {
    const { record, delivered } = request;
    const { fallback, said } = delivered;
    const { key, render } = post;
    const base = {
      ...post,
      mark: said[key],
      closed: (error: string) => goElsewhere(request, error),
    };
    if (fallback === "response-url")
      return { ...base, sentMark: "response", prepare: () => response(request, key, render) };
    if (fallback === "none")
      return { ...base, sentMark: "", prepare: async () => async () => "closed" };
    // Posted once, never edited; the result follows
    if (fallback === "dm") return { ...base, place: { channelId: record.requester.id } };
    return { ...base, place: placeOf(request), shows };
  }

  async function response({ record }: StoredRequest, key: string, render: OwedPost["render"]) {
    const message = await render();
    const invite = context(
      md`Gatehouse isn't in this channel, so only you see this. \`/invite @gatehouse\` lets everyone see and answer.`,
    );
    const blocks = key === "card" ? [...message.blocks, invite] : message.blocks;
    const post = { show: { ...message, blocks }, replace: false, threadTs: record.threadTs };
    const url = openResponseUrl(record.sealedResponseUrl ?? "", options.botToken, options.apiUrl);
    const isFresh = (await store.now()) - record.createdAt < responseUrlMs;
    return async () => {
      // A lost answer may have been shown and can't be looked up: twice would be worse
      const isShown = url && isFresh && (await postResponse(url, post, options)) !== "refused";
      return isShown ? undefined : "response_url_refused";
    };
  }

  async function goElsewhere(
    { record, delivered }: StoredRequest,
    error: string,
  ): Promise<number | undefined> {
    if (delivered.fallback === "none") return undefined;
    const canRespond = record.sealedResponseUrl !== undefined && delivered.fallback === undefined;
    const fallback = canRespond ? "response-url" : delivered.fallback === "dm" ? "none" : "dm";
    await outbox.remember(record.id, { fallback });
    await store.note({ what: "message-moved", request: record.id, to: fallback, why: error });
    return 0;
  }

  /** Only the requester sees its card, so no one can approve it: canceled now rather than in 15 minutes. */
  async function cancelUnapprovable(request: StoredRequest): Promise<void> {
    const why = "Gatehouse can't post in this channel, so no one can approve it";
    const hint = "Use /invite @gatehouse there, then request again.";
    const progress = { ...request.progress, why, hint };
    await store.move(request, { state: "cancelled", progress, why });
  }

  const { visibilityTimeoutMs, at } = options;
  return { kind: "request", outbox, atOnce: 8, visibilityTimeoutMs, read, at };
}

function placeOf({ record, delivered }: StoredRequest): { channelId: string; threadTs?: string } {
  const { card } = delivered;
  const threadTs = record.threadTs ?? card?.ts;
  const channelId = card?.channelId ?? record.channelId;
  return { channelId, ...(threadTs ? { threadTs } : {}) };
}

/** Not where a person must decide or open something, nor what must stand out. */
function mayShare({ record, state, delivered }: StoredRequest, command: ChangeCommand): boolean {
  const { fallback, isAlone } = delivered;
  if (fallback !== undefined || isAlone || record.breakGlass) return false;
  return state !== "draft" && state !== "unknown" && command.class !== "secret";
}
