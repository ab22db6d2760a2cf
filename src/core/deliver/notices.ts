import { hash } from "node:crypto";
import * as z from "zod";
import { type Block, type Message } from "../../messages/blocks.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { answered, buttonsOf } from "../../messages/pressed-buttons.ts";
import { Markdown } from "../../messages/markdown.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { createOutbox } from "../../redis/outbox.ts";
import {
  type Fields,
  type Keys,
  type RedisClient,
  defineScript,
  fieldsNamed,
  redisTimeLua,
} from "../../redis/redis.ts";
import type { Owes, Source } from "./deliver.ts";
import type { Owed } from "./post-once.ts";

/** A message without a request: a freeze, an alarm, the head of the audit trail, a digest. */
export interface Notice {
  /** The idempotency key: a notice with the same ID is the same one, from any process. */
  id: string;
  channelId: string;
  threadTs?: string;
  message: Message;
}

/** A notice that a script announced, with facts of which the message is rendered. */
interface NoticeOfFacts extends Omit<Notice, "message"> {
  facts: string;
}

const placed = { id: z.string(), channelId: z.string(), threadTs: z.string().exactOptional() };
const block = z.looseObject({ type: z.string() });

export const noticeRecord = defineRecord<Notice | NoticeOfFacts>({
  name: "notice",
  schema: z.union([
    objectOf<NoticeOfFacts>({ ...placed, facts: z.string() }),
    objectOf<Notice>({
      ...placed,
      message: z.looseObject({
        text: z.string(),
        blocks: z.array(z.custom<Block>((value) => block.safeParse(value).success)),
      }),
    }),
  ]),
});

/**
 * Stores a notice, which is then posted once, as soon as Slack accepts it, but not before `inMs`
 * are over. Pass `ts` when it was posted already. Resolves when it is stored: with true, or with
 * false when it was announced before.
 */
export type Announce = (
  notice: Notice,
  posting?: { ts?: string; inMs?: number },
) => Promise<boolean>;

/** Takes back or hastens notices that are announced and not posted yet. */
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

  async function prepareNotice(id: string, fields: Fields): Promise<Owes | undefined> {
    if (!fields["notice"]) return undefined;
    const notice = noticeRecord.parse(fields["notice"], id);
    if (!notice) return undefined;
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
          (message, [named, words]) =>
            answered(message, named, new Markdown(words), fields[`asks:${named}`]) ?? message,
          "facts" in notice ? await render(notice.facts) : notice.message,
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
      const args = [noticeRecord.write(notice), notice.id, noticeKeptMs, ts, inMs];
      const isNew = (await runAnnounce([hashOf(notice.id), outbox.list], args)) === 1;
      outbox.wake(notice.id);
      return isNew;
    },
    async answer({ action, value }, words, asks) {
      const named = `${action} ${value}`;
      for (const id of await redis.smembers(noticesWith(named))) {
        const { notice: text } = await outbox.get(id);
        const notice = text === undefined ? undefined : noticeRecord.parse(text, id);
        if (!notice || "facts" in notice || !answered(notice.message, named, words)) continue;
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
