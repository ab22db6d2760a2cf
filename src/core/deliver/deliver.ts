import { type Work, during, workOnRequests } from "../../log/traces.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import type { Outbox } from "../../redis/outbox.ts";
import type { Due } from "../../redis/pending.ts";
import type { Fields } from "../../redis/redis.ts";
import { type AfterAttempt, type Owed, type Subject, createPostOnce, isSaid } from "./post-once.ts";

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
 * behind, each due at a Redis time. The process that made one due, or a job of the queue `messages`,
 * takes it:
 *
 *     due ──► taken ──► read ──► a message is owed: the first is posted, and all is read again
 *                          └───► nothing is owed: done, or due again if it changed or was woken
 *     due again   later, when Slack limits, an answer was lost, or another process is posting
 *                 or when the relay notices that its process died
 *
 * Any process may stop at any step, and two may have one subject in hand where one is slow. The marks of `createPostOnce`
 * ensure that each message is still posted once.
 */
export function messageWork(
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

  async function deliver(source: Source, id: string, mark: string): Promise<Due | undefined> {
    const { outbox } = source;
    for (;;) {
      const fields = await outbox.get(id);
      const owes = await source.prepareMessages(id, fields);
      const isUnread = !owes && Object.keys(fields).length > 0;
      if (!isUnread) unread.delete(`${outbox.kind} ${id}`);
      const after = owes && (await postFirst(source, id, owes));
      if (after !== undefined && after.kind !== "wait") continue;
      const inMs = after?.waitMs ?? owes?.waitMs ?? (isUnread ? waitForReader(outbox.kind, id) : 0);
      const revision = owes?.revision ?? fields["revision"] ?? "";
      return outbox.settle(id, mark, revision, inMs);
    }
  }

  /**
   * Posts the first message that is owed. Resolves like `postOnce`, or with undefined when none is
   * owed. When a first post must wait for its turn, the next edit is made meanwhile.
   */
  async function postFirst(
    { at, outbox }: Source,
    id: string,
    owes: Owes,
  ): Promise<AfterAttempt | undefined> {
    const [owed, ...others] = sortOwed(owes.messages);
    if (!owed) return undefined;
    const subject = { kind: outbox.kind, at, id, createdAt: owes.createdAt, outbox };
    return during(owes.work ?? workOnRequests([]), async () => {
      const after = await postOnce(subject, owed);
      if (after.kind !== "wait" || isSaid(owed.mark)) return after;
      const edit = others.find(isToEdit);
      const afterEdit = edit && (await postOnce(subject, edit));
      if (afterEdit === undefined) return after;
      const isSooner = afterEdit.kind !== "wait" || afterEdit.waitMs < after.waitMs;
      return isSooner ? afterEdit : after;
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
