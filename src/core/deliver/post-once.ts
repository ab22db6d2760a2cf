import { asText, inFewWords } from "../../messages/plain-text.ts";
import { usualPace } from "../../config/policy-schema.ts";
import type { Log } from "../../log/log.ts";
import { type Message } from "../../messages/blocks.ts";
import { asPost } from "../../messages/notification.ts";
import type { Outbox } from "../../redis/outbox.ts";
import type { shownIn } from "../../redis/shown.ts";
import { textAt } from "../../slack/json.ts";
import type { SharedChannels } from "../../slack/shared-channels.ts";
import { type WebAnswer } from "../../slack/web-answer.ts";
import { type Place, type Web, postMessage } from "../../slack/web.ts";
import { createDirectChannels } from "./direct-channels.ts";
import { type Says, type Sought, createLookUp, metadataOf } from "./look-up.ts";
import { createMarkAges } from "./mark-ages.ts";
import type { Mark, RateLimiter, TurnAnswer, Urgency } from "./rate-limiter.ts";
import {
  isOfContent,
  isRefused,
  closedChannel,
  isOfThread,
  showOrSay,
  uneditable,
} from "../../slack/refused-message.ts";

/** The subject of messages, such as a request, a shared card, or a notice. */
export interface Subject extends Sought {
  /** Stores the marks of its messages. */
  outbox: Pick<Outbox, "hashOf" | "mark" | "remember">;
  /** A failpoint before and after each post, for tests. */
  at?: ((point: "posting" | "posted", id: string) => Promise<void>) | undefined;
}

/** Whether a message whose place is closed is owed in another place. */
export type Relocation = "moved" | "nowhere";

/** A message in a channel: posted once, and edited there when it can change. */
export interface Owed extends Says {
  /** Identifies the message within its subject. Its mark is the field `said:<key>`. */
  key: string;
  /** The mark that was read. */
  mark: string | undefined;
  /**
   * Keys whose content is in this message, and could be in another one, with their marks as read.
   * The post begins only if they are as read, and they become `insideMark` of this one.
   */
  takesIn?: Readonly<Record<string, string>> | undefined;
  /** Fields on which the content depends. The post begins only if they still have these values. */
  dependsOn?: Readonly<Record<string, string>> | undefined;
  /** Called when the place is closed, to note that the message is owed in another place. */
  onClosed?: ((error: string) => Promise<Relocation>) | undefined;
  /** Called when Slack has accepted the message in this channel. Must not throw. */
  onSaid?: ((channelId: string) => void) | undefined;
  /** The place to post in. A person's ID stands for their direct messages. */
  place: Place;
  /**
   * Renders the message before its turn is taken, so that only the call comes after the mark. A
   * message that waits is rendered at each attempt.
   */
  render(at?: Place): Message | Promise<Message>;
  /** Others may join until the mark is set, so the message is rendered after it. */
  growsUntilMarked?: boolean | undefined;
  shows?: Shows | undefined;
  /**
   * Identifies the message in the line of its channel, by default with its key. Set it when another
   * message may replace this one while it waits, so that the place in the line is kept.
   */
  turn?: string | undefined;
  /** The urgency in the line of the channel; by default that of a result. */
  urgency?: Urgency | undefined;
  /**
   * Called when the message can't be posted at once: lets it join a message of others. Resolves
   * with false when it must wait for its turn instead.
   */
  join?: (() => Promise<boolean>) | undefined;
  /** Treat any refusal of the message as a refusal of its place. */
  isFragile?: boolean | undefined;
}

/**
 * The content of a message that changes. A field of the subject's hash stores a version of it:
 * `before` was read there, and `now` is what the message should show.
 */
export interface Shows {
  field: string;
  before: string;
  now: string;
  /** The place of the message. Undefined until it is posted. */
  standsAt: { channelId: string; ts: string } | undefined;
  /** No other edit of the message follows. */
  isLast: boolean;
  /**
   * The message asks somebody for a decision. When Slack takes no more edits, it is posted anew.
   */
  asks?: boolean | undefined;
  /**
   * The message tells how its subject ended, and the thread doesn't repeat that. When Slack takes
   * no more edits, it is posted anew too, unless a person deleted it.
   */
  tellsEnd?: boolean | undefined;
  /**
   * Called when Slack takes no more edits. It tells people privately whose press the edit would
   * have shown. Must not throw.
   */
  onStale?: (() => Promise<void>) | undefined;
}

/**
 * Limits how often a card is edited while its subject goes on. Returns what the card should show
 * now, and how long an edit must wait (ms). An edit to another `look` is news and doesn't wait;
 * another `version` of the same look waits until `editMs` after the last edit, unless it is the
 * last: nobody waits to see how a subject ended.
 */
export function paced(
  { card: standsAt, shown: before = "" }: Partial<ReturnType<typeof shownIn>>,
  { version, look, isLast }: { version: string; look: string; isLast: boolean },
  now: number,
  editMs = usualPace.editMs,
): { shows: Shows; waitMs: number } {
  const [shownVersion, shownLook, shownAt] = before.split(" ");
  const isSame = shownVersion === version && shownLook === look;
  const sinceMs = now - Number(shownAt);
  const isProgress = standsAt && !isSame && !isLast && shownLook === look && sinceMs >= 0;
  const waitMs = isProgress ? Math.max(0, editMs - sinceMs) : 0;
  const shown = isSame || waitMs > 0 ? before : `${version} ${look} ${now}`;
  return { shows: { field: "shown", before, now: shown, standsAt, isLast }, waitMs };
}

/**
 * The mark of a message whose charts or tables Slack has refused. It is provably not posted, and
 * the next attempt has words in their place.
 */
const wordsMark = "posting words";
/**
 * The mark of a message whose blocks Slack has refused altogether. It is provably not posted, and
 * the next attempt is text alone.
 */
const textMark = "posting text";
/** The mark of a posted message that Slack no longer lets be edited, and that is posted anew. */
export const anewMark = "posting anew";
const notPosted = new Set(["", wordsMark, textMark, anewMark]);

/**
 * The mark of a message whose content is in the post of another one, which has begun. It is settled
 * with that one, and free again when that one is provably not posted.
 */
export const insideMark = (key: string): string => `posting in ${key}`;

/** Returns the form of a message that its mark asks for. */
function formOf(whole: Message, mark: string): Message {
  if (mark === textMark) return asText(whole);
  return asPost(mark === wordsMark ? (inFewWords(whole) ?? whole) : whole);
}

/** Returns the mark of the form to try after a refusal. Undefined when there is no other form. */
function nextForm(whole: Message, mark: string): string | undefined {
  if (mark === textMark) return undefined;
  return mark !== wordsMark && inFewWords(whole) ? wordsMark : textMark;
}

/**
 * Whether a message is settled: its mark is its ts, or a word that says why it isn't posted. Marks
 * that begin with "posting" belong to messages that may still have to be posted.
 */
export function isSaid(mark: string | undefined): boolean {
  return mark !== undefined && mark !== "" && !mark.startsWith("posting");
}

/** The next step after an attempt to post or edit a message. */
export type AfterAttempt =
  /** The message is as it should be, or nothing more can be done for it. */
  | { kind: "settled" }
  /** The attempt changed the message or its place, so all is read again at once. */
  | { kind: "read-again" }
  /** All is read again for the next attempt in this time (ms). */
  | { kind: "wait"; waitMs: number };

const settled: AfterAttempt = { kind: "settled" };
const readAgain: AfterAttempt = { kind: "read-again" };
const tryIn = (waitMs: number): AfterAttempt => ({ kind: "wait", waitMs });
/** Another process may have set the mark first, or the message joined one of others. */
const readAgainSoon = tryIn(1);

/** The mark that this process has set. */
interface OwnMark {
  kind: "own";
  /** Replaces the mark. Resolves with false when another process has replaced it. */
  becomes(value: string): Promise<boolean>;
  /**
   * Checks right before the call whether the mark is still valid. When this process was suspended
   * for too long, it takes the mark back and resolves with false.
   */
  isInTime(): Promise<boolean>;
}

/** More than a call may take (ms). A younger mark may belong to a call in flight. */
const callMs = 10_000;
/**
 * The longest time from the request for a mark to the call (ms). A process that was suspended for
 * longer must assume that others went on.
 */
const windowMs = 2000;

/**
 * Creates the function that posts or edits one message. Before each call a mark is compared and
 * set, so only one of several processes makes the call:
 *
 *     "" ──► posting <since> ──► <ts of the message>, or a word when it is settled without one
 *                     ├──► ""              provably not posted, for example because Slack refuses
 *                     │                    the app itself
 *                     ├──► posting words   provably not posted, because Slack refuses its charts or
 *                     │                    tables: it is posted in words
 *                     ├──► posting text    provably not posted, because Slack refuses its blocks:
 *                     │                    it is posted as text alone
 *                     └──► posting <then>  the answer was lost: it counts as in flight a little
 *                                          longer, is then looked up in Slack, and is posted again
 *                                          only when it isn't there
 *
 *     <ts> ──► posting anew                Slack takes no more edits, and the message asks somebody
 *                                          or tells the end: it is posted once more, as above
 *
 *     <version shown> ──► editing <since> ──► <version shown now>
 *                                └──► editing 0    not edited, or the answer was lost: the edit is
 *                                                  made again, because it is idempotent
 *
 * A process may die during its call. Its mark then counts as a call in flight until that call must
 * have ended, and after that as a lost answer.
 */
export function createPostOnce(options: {
  web: Web;
  rateLimiter: RateLimiter;
  log: Log;
  /**
   * Tells why a channel is closed. It is called before a post is marked, because the mark allows
   * only the time of one call.
   */
  refusal: SharedChannels["refusal"];
  /** Redis time (ms), so that marks mean the same to all processes. */
  now(): Promise<number>;
  us: Parameters<typeof createLookUp>[0]["us"];
  /** How long until the next attempt when an answer was lost, or when Slack refuses the app itself (ms). */
  retryMs: number;
}) {
  const { web, rateLimiter, log, retryMs } = options;
  const directs = createDirectChannels(web);
  const lookUpIn = createLookUp(options);
  const ages = createMarkAges(options.now, callMs);

  return async function postOnce(subject: Subject, owed: Owed): Promise<AfterAttempt> {
    const { shows, mark = "" } = owed;
    // A message that is posted anew has a place, but its mark isn't a ts.
    const standsAt = isSaid(mark) ? shows?.standsAt : undefined;
    const leftMs = await timeInFlight(shows && standsAt ? shows.before : mark);
    if (leftMs > 0) return tryIn(leftMs);
    if (shows && standsAt) return edit(subject, owed, shows, standsAt);
    return post(subject, owed, owed.place);
  };

  async function post(subject: Subject, owed: Owed, wanted: Place): Promise<AfterAttempt> {
    const { kind, id } = subject;
    const { key, mark = "", urgency, shows, covers = [] } = owed;
    const former = shows?.standsAt;
    // A message that is posted anew comes beside the former one, not into its thread.
    const at = former && wanted.threadTs === former.ts ? { channelId: wanted.channelId } : wanted;
    const join = mark === "" ? owed.join : undefined;
    const isUnclear = !notPosted.has(mark);
    const lookUp = lookUpExcept(former?.ts);
    const shown: Record<string, string> = shows ? { [shows.field]: shows.now } : {};
    const channel = await directs.of(at.channelId);
    // A look-up needs the ID of the conversation. A first post needs only the person's ID.
    if (channel === undefined && isUnclear) return tryIn(retryMs);
    const place = { ...at, channelId: channel ?? at.channelId };
    if (isUnclear) {
      const earlierPost = await lookUp(subject, key, place);
      if (earlierPost === "unsure") return tryIn(retryMs);
      // The version that it shows isn't stored, because it may have changed since the post.
      if (earlierPost) {
        await settle(earlierPost.ts, place.channelId, {}, earlierPost.covers);
        return readAgain;
      }
    }
    const no = await options.refusal(place.channelId);
    if (no)
      return no.kind === "refused"
        ? leavePlace(subject, owed, no.error)
        : waitAfter(no, { post: place.channelId });
    const early = owed.growsUntilMarked ? undefined : await owed.render(at);
    const turn = {
      id: `${kind} ${id} ${owed.turn ?? key}`,
      urgency,
      isJoining: join !== undefined,
    };
    const takenIn = Object.entries(owed.takesIn ?? {}).map(([other, before]) => ({
      field: `said:${other}`,
      before,
      becomes: insideMark(key),
    }));
    const read = Object.entries(owed.dependsOn ?? {}).map(([field, value]) => ({
      field,
      before: value,
      becomes: value,
    }));
    const freed = Object.fromEntries(takenIn.map(({ field }) => [field, ""]));
    const mine = await setMark(
      subject,
      { field: `said:${key}`, before: mark, doing: "posting", alongside: [...takenIn, ...read] },
      (marked) => rateLimiter.post(place.channelId, { ...turn, mark: marked }),
      freed,
    );
    if (mine.kind !== "own") {
      const isToWait = mine.kind === "wait" && (await join?.()) !== true;
      return isToWait ? mine : readAgainSoon;
    }
    const whole = early ?? (await owed.render(at));
    if (!(await mine.isInTime())) return readAgainSoon;
    await subject.at?.("posting", id);
    const answer = await postMessage(web, place, formOf(whole, mark), metadataOf(id, owed));
    await subject.at?.("posted", id);
    if (answer.ok) {
      const channelId = textAt(answer.data, "channel") || place.channelId;
      return settle(textAt(answer.data, "ts"), channelId, shown, covers);
    }
    const next = isOfContent(answer) ? nextForm(whole, mark) : undefined;
    // The call has ended, so the next attempt doesn't wait for it. When nothing was posted, it
    // isn't looked up either.
    const unposted = notPosted.has(mark) ? mark : former ? anewMark : "";
    await mine.becomes(answer.kind === "lost" ? await lostMark() : (next ?? unposted));
    if (next !== undefined) {
      const refusal = isRefused(answer) ? { error: answer.error, detail: answer.detail } : {};
      log.warn("slack.refused-form", { [kind]: id, message: key, ...refusal });
      return readAgain;
    }
    if (!isRefused(answer)) return waitAfter(answer, { post: place.channelId });
    const { error, detail } = answer;
    if (owed.isFragile || closedChannel.has(error)) return leavePlace(subject, owed, error);
    // The thread was deleted, or takes no reply, so the message is posted in the channel.
    if (place.threadTs && isOfThread(error))
      return post(subject, { ...owed, mark: unposted }, { channelId: place.channelId });
    log.error("slack.refused-message", { [kind]: id, message: key, error, detail });
    return settle("refused", place.channelId, shown, covers);

    /** Stores that the message, and those that it covers, are settled, and where it is. */
    async function settle(
      ts: string,
      channelId: string,
      more: Record<string, string>,
      also: readonly string[],
    ) {
      // The place of a message that may be edited is stored, so that the edit finds it.
      const isKept = (key === "card" || shows) && ts !== "refused";
      const stands = isKept ? { [key]: `${channelId} ${ts}` } : {};
      const was = isKept && former ? { [`was:${key}`]: `${former.channelId} ${former.ts}` } : {};
      const marks = Object.fromEntries([key, ...also].map((posted) => [`said:${posted}`, ts]));
      await subject.outbox.remember(id, { ...marks, ...stands, ...was, ...more });
      if (ts !== "refused") owed.onSaid?.(channelId);
      return settled;
    }
  }

  async function edit(
    subject: Subject,
    owed: Owed,
    shows: Shows,
    { channelId: channel, ts }: NonNullable<Shows["standsAt"]>,
  ): Promise<AfterAttempt> {
    const { field, before, now, isLast } = shows;
    const message = asPost(await owed.render());
    const id = `${subject.kind} ${subject.id} ${owed.key}`;
    const mine = await setMark(subject, { field, before, doing: "editing" }, (mark) =>
      rateLimiter.edit({ id, isLast, mark }),
    );
    if (mine.kind !== "own") return mine.kind === "wait" ? mine : readAgainSoon;
    if (!(await mine.isInTime())) return readAgainSoon;
    const answer = await showOrSay(message, ({ text, blocks }) =>
      web.call("chat.update", { channel, ts, text, blocks }),
    );
    if (!answer.ok && !isRefused(answer)) {
      await mine.becomes("editing 0");
      return waitAfter(answer, "edit");
    }
    if (!answer.ok) {
      log.warn("slack.refused-edit", { [subject.kind]: subject.id, error: answer.error });
      if (uneditable.has(answer.error)) {
        await shows.onStale?.();
        const { mark = "" } = owed;
        const isMissed = shows.asks || (shows.tellsEnd && answer.error !== "message_not_found");
        const isAnew =
          isMissed && (await subject.outbox.mark(subject.id, `said:${owed.key}`, mark, anewMark));
        if (isAnew) {
          // This edit has ended, so that one of the new message doesn't wait for it.
          await mine.becomes("editing 0");
          return readAgain;
        }
      }
    }
    await subject.outbox.remember(subject.id, { [field]: now });
    return settled;
  }

  /**
   * Returns a function that looks for a message in its thread, and then in the channel, where it
   * was posted if the thread took no reply. The message with the ts `former` doesn't count.
   */
  function lookUpExcept(former: string | undefined) {
    return async (subject: Subject, key: string, { channelId, threadTs }: Place) => {
      const inThread = threadTs && (await lookUpIn(subject, key, { channelId, threadTs }, former));
      return inThread || lookUpIn(subject, key, { channelId }, former);
    };
  }

  /**
   * Handles a closed place. When there is no other place, the message is settled without being
   * posted.
   */
  async function leavePlace(
    { kind, id, outbox }: Subject,
    owed: Owed,
    error: string,
  ): Promise<AfterAttempt> {
    if ((await owed.onClosed?.(error)) === "moved") return readAgain;
    log.error("slack.nowhere-to-say", { [kind]: id, message: owed.key, error });
    await outbox.remember(id, { [`said:${owed.key}`]: "nowhere" });
    return settled;
  }

  /**
   * Resolves with when the next attempt is made. A message that Slack refuses because of the
   * app's token, account, or scopes stays owed until somebody corrects them. One attempt in this
   * time is enough to notice that, however many messages are owed, so all of them pause.
   */
  async function waitAfter(
    answer: Exclude<WebAnswer, { ok: true }>,
    limit: Parameters<RateLimiter["pause"]>[0],
  ): Promise<AfterAttempt> {
    if (answer.kind !== "limited" && answer.kind !== "refused") return tryIn(retryMs);
    if (answer.kind === "refused") log.warn("slack.refused-us", { error: answer.error });
    const waitMs = answer.kind === "limited" ? answer.retryAfterMs : retryMs;
    await rateLimiter.pause(limit, waitMs);
    return tryIn(waitMs);
  }

  /**
   * Sets the mark of a call when its turn comes. Before that, or when another process has changed
   * the mark, resolves with the answer to the request for a turn.
   */
  async function setMark(
    { id, outbox }: Subject,
    mark: Omit<Mark, "hash">,
    takeTurn: (mark: Mark) => Promise<TurnAnswer>,
    /** Fields to set together with the former mark when nothing was posted. */
    freed: Readonly<Record<string, string>> = {},
  ): Promise<OwnMark | Exclude<TurnAnswer, { kind: "taken" }>> {
    const began = performance.now();
    const { field, before, doing } = mark;
    const turn = await takeTurn({ hash: outbox.hashOf(id), ...mark });
    if (turn.kind !== "taken") return turn;
    const { at } = turn;
    ages.compareClocks(at);
    const value = `${doing} ${at}`;
    const isFree = (next: string) => next === "" || next === anewMark;
    const becomes = (next: string) =>
      outbox.mark(id, field, value, next, isFree(next) ? freed : {});
    return {
      kind: "own",
      becomes,
      async isInTime() {
        if (performance.now() - began <= windowMs) return true;
        await becomes(before);
        return false;
      },
    };
  }

  /**
   * Returns the mark of a post whose answer was lost. It counts as in flight for `retryMs` more.
   */
  async function lostMark(): Promise<string> {
    return `posting ${(await ages.now()) - callMs + retryMs}`;
  }

  /** How long the call of a mark may still be in flight (ms); 0 when there is none. */
  async function timeInFlight(mark: string): Promise<number> {
    const since = /^(?:posting|editing) (\d+)$/.exec(mark)?.[1];
    return since === undefined || since === "0" ? 0 : ages.leftOf(Number(since));
  }
}
