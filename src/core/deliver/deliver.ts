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

/** What messages are about: requests, shared cards, rollouts or notices. */
export interface Source extends Pick<Subject, "at"> {
  outbox: Outbox;
  /** The field of its hash that says since when Slack lacks it (ms by Redis), for figures; undefined for what is no message. */
  owedSince?: "changedAt" | "createdAt" | "at";
  /** What is owed as its hash says; undefined for what is gone, or for another process to deliver: it knows the command. */
  readSubject(id: string, fields: Fields): Promise<Owes | undefined>;
}

export interface Owes {
  /** Redis time (ms). */
  createdAt: number;
  /** As read; 0 for what never changes. */
  revision: number;
  /** All its messages, posted or not, in order. */
  messages: readonly Owed[];
  /** What they are about, for the log and traces. */
  work?: Work;
  /** When to read again once all are posted (ms); 0 for never. */
  waitMs?: number;
}

/** The delay of what this process can't read (ms): another may, with the command of its release. It grows as long as nobody does. */
const unreadMs = { first: 1_000, most: 60_000 };
/** A process remembers at most so many that it can't read. */
const mostUnread = 1_000;

/**
 * Posts what Slack lacks. Each source has an outbox of IDs whose messages may be behind, each due at a Redis time; a job of the queue
 * `messages` takes one.
 *
 *     due ──► taken ──► read ──► the first message owed is posted, and all is read again
 *                          └───► nothing owed: done, or taken again when it changed or was asked for meanwhile
 *     due again   later, when Slack limits, an answer was lost, or another process has it
 *                 once BullMQ or the relay notice that its process died
 *
 * Any process may stop anywhere, and a stalled job may run twice: the marks of `createPostOnce` keep them apart.
 */
export function deliveryWork(
  sources: readonly Source[],
  options: Parameters<typeof createPostOnce>[0],
): PendingWork[] {
  const postOnce = createPostOnce(options);
  /** Since when this process hasn't been able to read each `<kind> <id>` (ms by the monotonic clock). */
  const unread = new Map<string, number>();

  /** Returns how long it waits until it is read again (ms). The log names it once, since perhaps no process can ever read it. */
  function waitUnread(kind: string, id: string): number {
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
      const owes = await source.readSubject(id, fields);
      const isUnread = !owes && Object.keys(fields).length > 0;
      if (!isUnread) unread.delete(`${outbox.kind} ${id}`);
      const posted = owes && (await postFirst(source, id, owes));
      if (posted !== undefined && posted <= 0) continue;
      const inMs = posted ?? owes?.waitMs ?? (isUnread ? waitUnread(outbox.kind, id) : 0);
      const revision = owes?.revision ?? fields["revision"] ?? "";
      return outbox.settle(id, mark, revision, inMs);
    }
  }

  /** As `postOnce` says; undefined when none is owed. While a first post waits for its turn, an edit doesn't wait with it. */
  async function postFirst({ at, outbox }: Source, id: string, owes: Owes) {
    const [owed, ...others] = inOrder(owes.messages);
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

/** What is said first comes before what is shown: an edit that waits must not hold up a result. */
function inOrder(messages: readonly Owed[]): Owed[] {
  return [...messages.filter(({ mark }) => !isSaid(mark)), ...messages.filter(isToEdit)];
}

const isToEdit = (one: Owed) => isSaid(one.mark) && isOutdated(one);

function isOutdated({ shows }: Owed): boolean {
  return shows?.standsAt !== undefined && shows.before !== shows.now;
}

/** A message without a request: a freeze, an alarm, the head of the audit trail, a digest. */
export interface Notice {
  /** Deduplicates: the same id, from any process, is the same notice. */
  id: string;
  channelId: string;
  threadTs?: string;
  message: Message;
}

/** Stored when it resolves; posted once, when Slack accepts it, or already (`ts`). False when it was announced before. */
export type Announce = (notice: Notice, ts?: string) => Promise<boolean>;

/** Shows words in place of a button that is answered for all, in every notice that has it, posted or not. */
export type AnswerNotices = (
  button: ButtonSpec,
  words: Markdown,
  /** The sentence beside the button that asks for the press. */
  asks?: string,
) => Promise<void>;

/** Within a script that has `now`: announces a notice, and returns 1 when it is new. */
export const announceLua = `
local function announce(pending, hash, id, notice, keptMs)
  if redis.call('HSETNX', hash, 'notice', notice) == 0 then return 0 end
  redis.call('HSET', hash, 'at', now)
  redis.call('PEXPIRE', hash, keptMs)
  redis.call('ZADD', pending, now, 'notice ' .. id)
  return 1
end
`;

/** KEYS notice, pending   ARGV notice, id, kept for (ms), the ts of one that was posted ('' for none) → 1 when it is new */
const announceScript = `${redisTimeLua}${announceLua}
local isNew = announce(KEYS[2], KEYS[1], ARGV[2], ARGV[1], ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'said:notice', ARGV[4]) end
return isNew
`;

export const noticeKey = (key: Keys, id: string): string => key("notice", id);

export const noticeKeptMs = 7 * 24 * 3600_000;

/** Stores notices, and posts one message for each, in order; what answers a button of it is edited in. */
export function createNotices(options: {
  redis: RedisClient;
  key: Keys;
  /** Actions of buttons that one person answers for all. */
  answeredForAll?(): readonly string[];
  /** Of a notice that a script announced with facts in place of a message. */
  render?(facts: string): Promise<Message>;
}): { announce: Announce; answer: AnswerNotices; source: Source } {
  const { redis, key, answeredForAll = () => [] } = options;
  const { render = () => Promise.reject(new Error("facts without words")) } = options;
  const hashOf = (id: string) => noticeKey(key, id);
  const outbox = createOutbox(redis, key, "notice", hashOf);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);
  /** The IDs of the notices that have this button. */
  const withButton = (named: string) => key("notices-with", hash("sha256", named).slice(0, 16));

  async function readNotice(_id: string, fields: Fields): Promise<Owes | undefined> {
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
      // Once it is posted; its answers only grow in number
      shows: standsAt && { field: "answered", before, now, standsAt, isLast: true },
    };
    const revision = Number(fields["revision"] ?? 0);
    return { createdAt: Number(fields["at"]), revision, messages: [owed] };
  }

  return {
    async announce(notice, ts = "") {
      // Before the notice is there: whoever answers its button finds it
      for (const named of buttonsOf(notice.message, answeredForAll())) {
        const ids = withButton(named);
        await redis.multi().sadd(ids, notice.id).pexpire(ids, noticeKeptMs).exec();
      }
      const args = [JSON.stringify(notice), notice.id, noticeKeptMs, ts];
      const isNew = (await runAnnounce([hashOf(notice.id), outbox.list], args)) === 1;
      outbox.wake(notice.id);
      return isNew;
    },
    async answer({ action, value }, words, asks) {
      const named = `${action} ${value}`;
      for (const id of await redis.smembers(withButton(named))) {
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
    source: { outbox, owedSince: "at", readSubject: readNotice },
  };
}
