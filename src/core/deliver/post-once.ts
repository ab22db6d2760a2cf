import { asText, inFewWords } from "../../fleet/charts/in-words.ts";
import { usualPace } from "../../config/policy-schema.ts";
import type { Log } from "../../log/log.ts";
import { type Message } from "../../messages/message.ts";
import type { Outbox } from "../../redis/outbox.ts";
import type { shownIn } from "../../redis/shown.ts";
import { textAt } from "../../slack/json.ts";
import type { SharedChannels } from "../../slack/shared-channels.ts";
import { type WebAnswer } from "../../slack/web-answer.ts";
import { type Place, type Web, postMessage } from "../../slack/web.ts";
import { type Says, type Sought, createLookUp, metadataOf } from "./look-up.ts";
import type { Mark, RateLimiter, Taken, Urgency } from "./rate-limiter.ts";
import {
  isOfContent,
  isRefused,
  closedChannel,
  isOfThread,
  showOrSay,
  uneditable,
} from "../../slack/refused-message.ts";

/** What messages belong to: a request, a shared card, a rollout, or a notice. */
export interface Subject extends Sought {
  /** Keeps its marks. */
  outbox: Pick<Outbox, "hashOf" | "mark" | "remember">;
  /** Failpoints. */
  at?: ((point: "posting" | "posted", id: string) => Promise<void>) | undefined;
}

/** A message in a channel: posted once, and edited there when it can change. */
export interface Owed extends Says {
  /** Names the message within its subject. Its mark is the field `said:<key>`. */
  key: string;
  /** The mark as it was read. */
  mark: string | undefined;
  /** The place is closed: how long until it is owed in another place (ms), or undefined when there is none. */
  closed?: ((error: string) => Promise<number | undefined>) | undefined;
  /** Slack has it. Must not throw. */
  onSaid?: (() => void) | undefined;
  /** A person's ID stands for their direct messages. */
  place: Place;
  /** Before its turn, so that only the call follows on the mark: while it waits, it is rendered each time. */
  render(at?: Place): Message | Promise<Message>;
  /** It grows until it is marked, and is rendered only then. */
  growsUntilMarked?: boolean | undefined;
  shows?: Shows | undefined;
  /** Its place in the line of its channel, where that outlives its key: others take its place as things go on. */
  turn?: string | undefined;
  /** By default a result's. */
  urgency?: Urgency | undefined;
  /** Where it can't go at once: has it said with others. False when it must wait for its turn. */
  join?: (() => Promise<boolean>) | undefined;
  /** Any refusal is one of its place. */
  isFragile?: boolean | undefined;
}

/** The content of a message that changes, in a field of its own: as read, and as it should be. */
export interface Shows {
  field: string;
  before: string;
  now: string;
  /** Where the message is, once it was posted. */
  standsAt: { channelId: string; ts: string } | undefined;
  isLast: boolean;
  /** What it shows asks somebody: where Slack takes no edit any more, it is posted anew, once. */
  asks?: boolean | undefined;
  /** It has ended, and what its thread says counts on the card to say how: posted anew too, unless a person deleted it. */
  tellsEnd?: boolean | undefined;
  /** Slack takes no edit any more: tells those privately whose press the edit would have shown. Must not throw. */
  onStale?: (() => Promise<void>) | undefined;
}

/**
 * Of a card that is edited as things go on: what it shows now, and how long the edit must wait (ms). A `look` that nobody saw yet is
 * news and waits for nothing.
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
  const isProgress = standsAt && !isSame && shownLook === look && sinceMs >= 0;
  const waitMs = isProgress ? Math.max(0, editMs - sinceMs) : 0;
  const shown = isSame || waitMs > 0 ? before : `${version} ${look} ${now}`;
  return { shows: { field: "shown", before, now: shown, standsAt, isLast }, waitMs };
}

/** The mark of a message whose charts or tables Slack has refused: it is provably not posted, and goes in words. */
const wordsMark = "posting words";
/** The same where Slack has refused any of its blocks: it goes as text alone. */
const textMark = "posting text";
/** The mark of a message that stands there, can't be edited any more, and is posted anew. */
export const anewMark = "posting anew";
const notPosted = new Set(["", wordsMark, textMark, anewMark]);

/** As its mark says. */
function formOf(whole: Message, mark: string): Message {
  if (mark === textMark) return asText(whole);
  return mark === wordsMark ? (inFewWords(whole) ?? whole) : whole;
}

/** The mark of the form to try after this was refused; undefined where there is none. */
function nextForm(whole: Message, mark: string): string | undefined {
  if (mark === textMark) return undefined;
  return mark !== wordsMark && inFewWords(whole) ? wordsMark : textMark;
}

/** A mark is the message's ts, or since when a post may be in flight. */
export function isSaid(mark: string | undefined): boolean {
  return mark !== undefined && mark !== "" && !mark.startsWith("posting");
}

/** The mark that this process has set. */
interface Mine {
  becomes(value: string): Promise<boolean>;
  /** Right before the call: false, and not marked, when this process was suspended for too long. */
  isInTime(): Promise<boolean>;
}

/** How long a post may still be in flight after its answer was lost (ms). */
const unsureMs = 3000;
/** More than a call may take: a younger mark may belong to a call in flight (ms). */
const callMs = 10_000;
/** From the mark to the call (ms). A process suspended for longer must assume that others went on. */
const windowMs = 2000;
/** Until the next try where Slack refuses the app itself (ms). */
const shutOutMs = 3000;
/** Another process set the mark first, or others say it too: read again. */
const readAgainMs = 1;
/** What is owed, or where, has changed by it: all is read again at once. */
const readAgain = -1;

/**
 * Posts one message that is owed, by at most one call, and returns when to retry (ms), 0 when it is posted, or below 0 when
 * all must be read again. Before each call a mark is compared and set, so only one of several processes makes the call:
 *
 *     "" ──► posting <since> ──► <ts of the message>, or another word when it is settled
 *                     ├──► ""             provably not posted, also because Slack refuses the app itself
 *                     ├──► posting words  provably not posted: Slack refuses its charts or tables, so it goes in words
 *                     ├──► posting text   provably not posted: Slack refuses its blocks, so it goes as text alone
 *                     └──► posting <then> its answer was lost: it counts as in flight a little longer, though asked for sooner, is
 *                                         then looked up in Slack, and posted again only when it isn't there
 *
 *     <ts> ──► posting anew   Slack takes no edit of it any more, and it asks somebody: posted once more, as above
 *
 *     <what it shows> ──► editing <since> ──► <what it shows now>
 *                                └──► editing 0    not edited, or its answer was lost: made again, since an edit is idempotent
 *
 * A process may die during its call. Its mark means a call in flight until that must have ended, then a lost answer.
 */
export function createPostOnce(options: {
  web: Web;
  rateLimiter: RateLimiter;
  log: Log;
  /** Why a channel is closed: asked before a post is marked, as the mark allows for the time of one call. */
  refusal: SharedChannels["refusal"];
  /** Redis time (ms): marks must mean the same to all processes. */
  now(): Promise<number>;
  us: Parameters<typeof createLookUp>[0]["us"];
}) {
  const { web, rateLimiter, log } = options;
  const directs = createDirects(web);
  const lookUpIn = createLookUp(options);
  const ages = createMarkAges(options.now, callMs);

  return async function postOnce(subject: Subject, owed: Owed): Promise<number> {
    const { shows, mark = "" } = owed;
    // One that is posted anew has a place, and no mark of its post
    const standsAt = isSaid(mark) ? shows?.standsAt : undefined;
    const leftMs = await leftOf(shows && standsAt ? shows.before : mark);
    if (leftMs > 0) return leftMs;
    if (shows && standsAt) return edit(subject, owed, shows, standsAt);
    return post(subject, owed, owed.place);
  };

  async function post(subject: Subject, owed: Owed, wanted: Place): Promise<number> {
    const { kind, id } = subject;
    const { key, mark = "", urgency, shows, covers = [] } = owed;
    const former = shows?.standsAt;
    // Beside the former one, not in its thread
    const at = former && wanted.threadTs === former.ts ? { channelId: wanted.channelId } : wanted;
    const join = mark === "" ? owed.join : undefined;
    const isUnclear = !notPosted.has(mark);
    const lookUp = lookUpBut(former?.ts);
    const shown: Record<string, string> = shows ? { [shows.field]: shows.now } : {};
    const channel = await directs.of(at.channelId);
    // A first post needs only the person
    if (channel === undefined && isUnclear) return unsureMs;
    const place = { ...at, channelId: channel ?? at.channelId };
    if (isUnclear) {
      const found = await lookUp(subject, key, place);
      if (found === "unsure") return unsureMs;
      // Not what it shows, which may have changed since it was posted
      if (found) {
        await said(found.ts, place.channelId, {}, found.covers);
        return readAgain;
      }
    }
    const no = await options.refusal(place.channelId);
    if (no)
      return no.kind === "refused"
        ? closed(subject, owed, no.error)
        : waitAfter(no, { post: place.channelId });
    const early = owed.growsUntilMarked ? undefined : await owed.render(at);
    const turn = {
      id: `${kind} ${id} ${owed.turn ?? key}`,
      urgency,
      isJoining: join !== undefined,
    };
    const mine = await begin(subject, `said:${key}`, mark, "posting", (marked) =>
      rateLimiter.post(place.channelId, { ...turn, mark: marked }),
    );
    if ("waitMs" in mine) {
      const isJoined = mine.waitMs > 0 && (await join?.()) === true;
      return isJoined ? readAgainMs : mine.waitMs || readAgainMs;
    }
    const whole = early ?? (await owed.render(at));
    if (!(await mine.isInTime())) return readAgainMs;
    await subject.at?.("posting", id);
    const answer = await postMessage(web, place, formOf(whole, mark), metadataOf(id, owed));
    await subject.at?.("posted", id);
    if (answer.ok) {
      const channelId = textAt(answer.data, "channel") || place.channelId;
      return said(textAt(answer.data, "ts"), channelId, shown, covers);
    }
    const next = isOfContent(answer) ? nextForm(whole, mark) : undefined;
    // The call has ended: the next attempt need not wait for it, nor look it up where nothing was posted
    const unposted = notPosted.has(mark) ? mark : former ? anewMark : "";
    await mine.becomes(answer.kind === "lost" ? await lostMark() : (next ?? unposted));
    if (next !== undefined) {
      const refusal = isRefused(answer) ? { error: answer.error, detail: answer.detail } : {};
      log.warn("slack.refused-form", { [kind]: id, what: key, ...refusal });
      return readAgain;
    }
    if (!isRefused(answer)) return waitAfter(answer, { post: place.channelId });
    const { error, detail } = answer;
    if (owed.isFragile || closedChannel.has(error)) return closed(subject, owed, error);
    // Its thread was deleted, or takes nothing: post in the channel
    if (place.threadTs && isOfThread(error))
      return post(subject, { ...owed, mark: unposted }, { channelId: place.channelId });
    log.error("slack.refused-message", { [kind]: id, what: key, error, detail });
    return said("refused", place.channelId, shown, covers);

    async function said(
      ts: string,
      channelId: string,
      more: Record<string, string>,
      also: readonly string[],
    ) {
      // What is edited later is edited where it was posted
      const isKept = (key === "card" || shows) && ts !== "refused";
      const stands = isKept ? { [key]: `${channelId} ${ts}` } : {};
      const was = isKept && former ? { [`was:${key}`]: `${former.channelId} ${former.ts}` } : {};
      const marks = Object.fromEntries([key, ...also].map((one) => [`said:${one}`, ts]));
      await subject.outbox.remember(id, { ...marks, ...stands, ...was, ...more });
      if (ts !== "refused") owed.onSaid?.();
      return 0;
    }
  }

  async function edit(
    subject: Subject,
    owed: Owed,
    shows: Shows,
    { channelId: channel, ts }: NonNullable<Shows["standsAt"]>,
  ): Promise<number> {
    const { field, before, now, isLast } = shows;
    const message = await owed.render();
    const id = `${subject.kind} ${subject.id} ${owed.key}`;
    const mine = await begin(subject, field, before, "editing", (mark) =>
      rateLimiter.edit({ id, isLast, mark }),
    );
    if ("waitMs" in mine) return mine.waitMs || readAgainMs;
    if (!(await mine.isInTime())) return readAgainMs;
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
        if (isMissed && (await subject.outbox.mark(subject.id, `said:${owed.key}`, mark, anewMark)))
          return readAgain;
      }
    }
    await subject.outbox.remember(subject.id, { [field]: now });
    return 0;
  }

  /** In the thread where it belongs, and in the channel, where it is when the thread takes nothing. */
  function lookUpBut(former: string | undefined) {
    return async (subject: Subject, key: string, { channelId, threadTs }: Place) => {
      const inThread = threadTs && (await lookUpIn(subject, key, { channelId, threadTs }, former));
      return inThread || lookUpIn(subject, key, { channelId }, former);
    };
  }

  async function closed({ kind, id, outbox }: Subject, owed: Owed, error: string): Promise<number> {
    const waitMs = await owed.closed?.(error);
    if (waitMs !== undefined) return waitMs === 0 ? readAgain : waitMs;
    log.error("slack.nowhere-to-say", { [kind]: id, what: owed.key, error });
    await outbox.remember(id, { [`said:${owed.key}`]: "nowhere" });
    return 0;
  }

  /**
   * Until the next try (ms). What Slack refuses because of the app's token, account, or scopes stays owed, and goes once they are
   * mended: one try in this time tells enough, however much is owed there.
   */
  async function waitAfter(
    answer: Exclude<WebAnswer, { ok: true }>,
    what: Parameters<RateLimiter["pause"]>[0],
  ): Promise<number> {
    if (answer.kind !== "limited" && answer.kind !== "refused") return unsureMs;
    if (answer.kind === "refused") log.warn("slack.refused-us", { error: answer.error });
    const waitMs = answer.kind === "limited" ? answer.retryAfterMs : shutOutMs;
    await rateLimiter.pause(what, waitMs);
    return waitMs;
  }

  /** Marks it, with its turn. Not its turn yet: how long until then; 0 when another process was faster. */
  async function begin(
    { id, outbox }: Subject,
    field: string,
    before: string,
    doing: "posting" | "editing",
    take: (mark: Mark) => Promise<Taken>,
  ): Promise<Mine | Pick<Taken, "waitMs">> {
    const began = performance.now();
    const { waitMs, at } = await take({ hash: outbox.hashOf(id), field, before, doing });
    if (at === undefined) return { waitMs };
    ages.saw(at);
    const value = `${doing} ${at}`;
    const becomes = (next: string) => outbox.mark(id, field, value, next);
    return {
      becomes,
      async isInTime() {
        if (performance.now() - began <= windowMs) return true;
        await becomes(before);
        return false;
      },
    };
  }

  /** Marks a post whose answer was lost: it counts as in flight for `unsureMs` more. */
  async function lostMark(): Promise<string> {
    return `posting ${(await ages.now()) - callMs + unsureMs}`;
  }

  /** How long the call of a mark may still be in flight (ms); 0 when there is none. */
  async function leftOf(mark: string): Promise<number> {
    const since = /^(?:posting|editing) (\d+)$/.exec(mark)?.[1];
    return since === undefined || since === "0" ? 0 : ages.leftOf(Number(since));
  }
}

/** More than this is a step of Redis' clock, not a slow answer (ms). A false alarm only costs a wait. */
const stepMs = 1000;

/**
 * The age of a mark that a process left in Redis before its call. A step of Redis' clock must not make it look old: the
 * monotonic clock detects the step, and then no mark counts as old until a call must have ended.
 */
export function createMarkAges(redisNow: () => Promise<number>, withinMs: number) {
  let apart: number | undefined;
  let steppedAt = -Infinity;

  function saw(at: number): void {
    const own = performance.now();
    if (apart !== undefined && Math.abs(at - own - apart) > stepMs) steppedAt = own;
    apart = at - own;
  }

  async function now(): Promise<number> {
    const at = await redisNow();
    saw(at);
    return at;
  }
  now().catch(() => undefined); // detects a step before the first message too

  return {
    now,
    /** Redis time, as it was told just now. */
    saw,
    /** How long until the call behind a mark from `since` must have ended; 0 when it has (ms). */
    async leftOf(since: number): Promise<number> {
      const at = await now();
      const sinceStep = performance.now() - steppedAt;
      const age = sinceStep < withinMs ? sinceStep : at - since;
      return age >= 0 && age < withinMs ? withinMs - age : 0;
    },
  };
}

const maxKept = 1_000;

/**
 * The conversations of direct messages. Slack takes a person's ID for a post, but neither finds nor edits a message there:
 * both want the ID of the conversation.
 */
export function createDirects(web: Web): { of(channelId: string): Promise<string | undefined> } {
  const known = new Map<string, string>();
  return {
    /** The ID itself where it is no person's, or where Slack opens no conversation; undefined while Slack doesn't tell. */
    async of(channelId) {
      if (!/^[UW]/.test(channelId)) return channelId;
      const before = known.get(channelId);
      if (before !== undefined) return before;
      const answer = await web.call("conversations.open", { users: channelId });
      if (!answer.ok) return answer.kind === "refused" ? channelId : undefined;
      const id = textAt(answer.data, "channel", "id") || channelId;
      if (known.size >= maxKept) known.clear();
      known.set(channelId, id);
      return id;
    },
  };
}
