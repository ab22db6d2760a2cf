import { hash } from "node:crypto";
import { type Work, during, workOnRequests } from "../../log/traces.ts";
import {
  type ButtonSpec,
  Markdown,
  type Message,
  answered,
  buttonsOf,
} from "../../messages/message.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import { type Outbox, createOutbox } from "../../redis/outbox.ts";
import {
  type Fields,
  type Keys,
  type RedisClient,
  defineScript,
  fieldsNamed,
  redisTimeLua,
} from "../../redis/redis.ts";
import { type Owed, type Subject, createPostOnce, isSaid } from "./post-once.ts";

/** One kind of subjects that owe messages, such as requests, shared cards, or notices. */
export interface Source extends Pick<Subject, "at"> {
  outbox: Outbox;
  /**
   * The field of a subject's hash that says since when Slack lacks its message (Redis, ms). The
   * metrics read it. Undefined when the source owes no messages.
   */
  owedSince?: "changedAt" | "createdAt" | "at";
  /**
   * Resolves with the messages that a subject owes, by its hash. It may first move the subject on,
   * and is idempotent. Undefined when the subject is gone, or when this process can't read it:
   * another process may know its command.
   */
  prepareMessages(id: string, fields: Fields): Promise<Owes | undefined>;
}

/** The messages that one subject owes. */
export interface Owes {
  /** Redis time (ms). */
  createdAt: number;
  /** The revision that was read; 0 for a subject that never changes. */
  revision: number;
  /** All its messages, posted or not, in order. */
  messages: readonly Owed[];
  /** The requests that the messages are about, for the log and traces. */
  work?: Work;
  /** How long to wait until the subject is read again, once all is posted (ms); 0 for never. */
  waitMs?: number;
}

/**
 * How long a subject that this process can't read is put off (ms). A process of another release may
 * know its command. The delay grows as long as no process reads the subject.
 */
const unreadMs = { first: 1_000, most: 60_000 };
/** The most subjects that a process remembers as unreadable. */
const mostUnread = 1_000;

/**
 * Posts the messages that Slack lacks. Each source has an outbox of subjects whose messages may be
 * behind, each due at a Redis time. A job of the queue `messages` takes one subject:
 *
 *     due ──► taken ──► read ──► a message is owed: the first is posted, and all is read again
 *                          └───► nothing is owed: done, or due again if it changed or was woken
 *     due again   later, when Slack limits, an answer was lost, or another process is posting
 *                 or when BullMQ or the relay notices that its process died
 *
 * Any process may stop at any step, and a stalled job may run twice. The marks of `createPostOnce`
 * ensure that each message is still posted once.
 */
export function deliveryWork(
  sources: readonly Source[],
  options: Parameters<typeof createPostOnce>[0],
): PendingWork[] {
  const postOnce = createPostOnce(options);
  /**
   * For each `<kind> <id>` that this process can't read: since when (ms by the monotonic clock).
   */
  const unread = new Map<string, number>();

  /**
   * Returns how long to wait until an unreadable subject is read again (ms). The log names it once,
   * because perhaps no process can ever read it.
   */
  function waitForReader(kind: string, id: string): number {
    const subject = `${kind} ${id}`;
    const now = performance.now();
    const since = unread.get(subject);
    if (since === undefined) {
      options.log.warn("slack.unreadable-subject", { [kind]: id });
      if (unread.size >= mostUnread) unread.clear();
      unread.set(subject, now);
    }
    return Math.min(unreadMs.most, Math.max(unreadMs.first, now - (since ?? now)));
  }

  async function deliver(source: Source, id: string, mark: string): Promise<void> {
    const { outbox } = source;
    for (;;) {
      const fields = await outbox.get(id);
      const owes = await source.prepareMessages(id, fields);
      const isUnread = !owes && Object.keys(fields).length > 0;
      if (!isUnread) unread.delete(`${outbox.kind} ${id}`);
      const posted = owes && (await postFirst(source, id, owes));
      if (posted !== undefined && posted <= 0) continue;
      const inMs = posted ?? owes?.waitMs ?? (isUnread ? waitForReader(outbox.kind, id) : 0);
      const revision = owes?.revision ?? fields["revision"] ?? "";
      return outbox.settle(id, mark, revision, inMs);
    }
  }

  /**
   * Posts the first message that is owed. Resolves like `postOnce`, or with undefined when none is
   * owed. When a first post must wait for its turn, the next edit is made meanwhile.
   */
  async function postFirst({ at, outbox }: Source, id: string, owes: Owes) {
    const [owed, ...others] = sortOwed(owes.messages);
    if (!owed) return undefined;
    const subject = { kind: outbox.kind, at, id, createdAt: owes.createdAt, outbox };
    return during(owes.work ?? workOnRequests([]), async () => {
      const waitMs = await postOnce(subject, owed);
      const edit = waitMs > 0 && !isSaid(owed.mark) ? others.find(isToEdit) : undefined;
      return edit ? Math.min(waitMs, await postOnce(subject, edit)) : waitMs;
    });
  }

  return sources.map((source) => ({
    pending: source.outbox,
    handle: (id, mark) => deliver(source, id, mark),
  }));
}

/**
 * Returns the messages that are owed. New posts come before edits, because an edit that waits must
 * not hold up a result.
 */
function sortOwed(messages: readonly Owed[]): Owed[] {
  return [...messages.filter(({ mark }) => !isSaid(mark)), ...messages.filter(isToEdit)];
}

const isToEdit = (owed: Owed) => isSaid(owed.mark) && isOutdated(owed);

function isOutdated({ shows }: Owed): boolean {
  return shows?.standsAt !== undefined && shows.before !== shows.now;
}

/** A message without a request: a freeze, an alarm, the head of the audit trail, a digest. */
export interface Notice {
  /** The idempotency key: a notice with the same ID is the same one, from any process. */
  id: string;
  channelId: string;
  threadTs?: string;
  message: Message;
}

/**
 * Stores a notice, which is then posted once, as soon as Slack accepts it, but not before `inMs`
 * are over. Pass `ts` when it was posted already. Resolves when it is stored: with true, or with
 * false when it was announced before.
 */
export type Announce = (notice: Notice, is?: { ts?: string; inMs?: number }) => Promise<boolean>;

/** What may happen to a notice between its announcement and its post. */
export interface OwedNotices {
  /** Takes back a notice that isn't posted yet, because people were told otherwise. */
  withdraw(id: string): Promise<void>;
  isWithdrawn(id: string): Promise<boolean>;
  /** Posts a notice now that was announced for later. */
  hasten(id: string): Promise<void>;
}

/**
 * Shows words in place of a button that one person answers for all. It changes every notice that
 * has the button, posted or not.
 */
export type AnswerNotices = (
  button: ButtonSpec,
  words: Markdown,
  /** The sentence beside the button that asks for the press. */
  asks?: string,
) => Promise<void>;

/** For a script that has `now`: announces a notice, and returns 1 when it is new. */
export const announceLua = `
local function announce(pending, hash, id, notice, keptMs, inMs)
  if redis.call('HSETNX', hash, 'notice', notice) == 0 then return 0 end
  local due = now + inMs
  redis.call('HSET', hash, 'at', due)
  redis.call('PEXPIRE', hash, keptMs)
  redis.call('ZADD', pending, due, 'notice ' .. id)
  return 1
end
`;

/**
 * KEYS notice, pending
 * ARGV notice, ID, how long it is kept (ms), its ts if it was posted already ('' for none), due in
 * (ms)
 * → 1 when it is new
 */
const announceScript = `${redisTimeLua}${announceLua}
local isNew = announce(KEYS[2], KEYS[1], ARGV[2], ARGV[1], ARGV[3], ARGV[5])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'said:notice', ARGV[4]) end
return isNew
`;

export const noticeKey = (key: Keys, id: string): string => key("notice", id);

export const noticeKeptMs = 7 * 24 * 3600_000;

/** The mark of a notice that is settled without a post. */
const withdrawnMark = "withdrawn";

/**
 * Creates the source of notices: it stores them and posts one message for each. The answer to a
 * button is shown by an edit of the message.
 */
export function createNotices(options: {
  redis: RedisClient;
  key: Keys;
  /** The actions of buttons that one person answers for all. */
  answeredForAll?(): readonly string[];
  /** Renders a notice that a script announced with facts in place of a message. */
  render?(facts: string): Promise<Message>;
}): { announce: Announce; answer: AnswerNotices; owed: OwedNotices; source: Source } {
  const { redis, key, answeredForAll = () => [] } = options;
  const { render = () => Promise.reject(new Error("facts without words")) } = options;
  const hashOf = (id: string) => noticeKey(key, id);
  const outbox = createOutbox(redis, key, "notice", hashOf);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);
  /** The key of the set of notices that have this button. */
  const noticesWith = (named: string) => key("notices-with", hash("sha256", named).slice(0, 16));

  async function prepareNotice(_id: string, fields: Fields): Promise<Owes | undefined> {
    if (!fields["notice"]) return undefined;
    const { facts, ...notice } = JSON.parse(fields["notice"]) as Notice & { facts?: string };
    const { channelId } = notice;
    const { "said:notice": mark = "", answered: before = "" } = fields;
    const answers = fieldsNamed("answer:", fields);
    const standsAt = /^\d/.test(mark) ? { channelId, ts: mark } : undefined;
    const now = String(answers.length || "");
    const owed: Owed = {
      key: "notice",
      mark,
      place: notice,
      render: async () =>
        answers.reduce(
          (said, [named, words]) =>
            answered(said, named, new Markdown(words), fields[`asks:${named}`]) ?? said,
          facts === undefined ? notice.message : await render(facts),
        ),
      // Only a posted notice is edited. The number of answers identifies what it shows, because
      // answers are only added.
      shows: standsAt && { field: "answered", before, now, standsAt, isLast: true },
    };
    const revision = Number(fields["revision"] ?? 0);
    return { createdAt: Number(fields["at"]), revision, messages: [owed] };
  }

  return {
    async announce(notice, { ts = "", inMs = 0 } = {}) {
      // The index is written before the notice, so that an answer to its button always finds it.
      for (const named of buttonsOf(notice.message, answeredForAll())) {
        const ids = noticesWith(named);
        await redis.multi().sadd(ids, notice.id).pexpire(ids, noticeKeptMs).exec();
      }
      const args = [JSON.stringify(notice), notice.id, noticeKeptMs, ts, inMs];
      const isNew = (await runAnnounce([hashOf(notice.id), outbox.list], args)) === 1;
      outbox.wake(notice.id);
      return isNew;
    },
    async answer({ action, value }, words, asks) {
      const named = `${action} ${value}`;
      for (const id of await redis.smembers(noticesWith(named))) {
        const { notice = "{}" } = await outbox.get(id);
        const { message: said } = JSON.parse(notice) as Partial<Notice>;
        if (!said || !answered(said, named, words)) continue;
        await redis
          .multi()
          .hset(hashOf(id), {
            [`answer:${named}`]: words.value,
            ...(asks === undefined ? {} : { [`asks:${named}`]: asks }),
          })
          .hincrby(hashOf(id), "revision", 1)
          .pexpire(hashOf(id), noticeKeptMs)
          .zadd(outbox.list, 0, outbox.memberOf(id))
          .exec();
        outbox.wake(id);
      }
    },
    owed: {
      async withdraw(id) {
        // A mark before the announcement would settle a notice that nobody has withdrawn.
        if ((await outbox.get(id))["notice"] === undefined) return;
        if (await outbox.mark(id, "said:notice", "", withdrawnMark)) await outbox.later(id, 0);
      },
      isWithdrawn: async (id) => (await outbox.get(id))["said:notice"] === withdrawnMark,
      hasten: (id) => outbox.later(id, 0),
    },
    source: { outbox, owedSince: "at", prepareMessages: prepareNotice },
  };
}
