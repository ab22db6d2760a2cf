import type { Message } from "../../messages/message.ts";
import { createOutbox } from "../../redis/due-list.ts";
import {
  redisTimeLua,
  type Fields,
  type Keys,
  defineScript,
  type RedisClient,
} from "../../redis/redis.ts";
import type { Owes, Source } from "./deliver.ts";
import type { Owed } from "./post-once.ts";

/** A message without a request: a freeze, an alarm, the head of the audit trail, a digest. */
export interface Notice {
  /** Deduplicates: the same id, from any process, is the same notice. */
  id: string;
  channelId: string;
  threadTs?: string;
  message: Message;
}

/** Stored when it resolves; posted once, when Slack accepts it. False when it was announced before. */
export type Announce = (notice: Notice) => Promise<boolean>;

/** KEYS notice, notices   ARGV notice, id, kept for (ms) → 1 when it is new */
const announceScript = `${redisTimeLua}
if redis.call('HSETNX', KEYS[1], 'notice', ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'at', now)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], now, ARGV[2])
return 1
`;

const keptMs = 7 * 24 * 3600_000;
/** Stores notices, and posts one message for each, in order. */
export function createNotices(options: { redis: RedisClient; key: Keys }): {
  announce: Announce;
  source: Source;
} {
  const { redis, key } = options;
  const noticeKey = (id: string) => key("notice", id);
  const outbox = createOutbox(redis, key("notices"), noticeKey);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);

  async function read(_id: string, fields: Fields): Promise<Owes | undefined> {
    if (!fields["notice"]) return undefined;
    const notice = JSON.parse(fields["notice"]) as Notice;
    const owed: Owed = {
      key: "notice",
      mark: fields["said:notice"],
      place: notice,
      render: () => notice.message,
    };
    return { createdAt: Number(fields["at"]), revision: 0, messages: [owed] };
  }

  return {
    async announce(notice) {
      const args = [JSON.stringify(notice), notice.id, keptMs];
      const isNew = (await runAnnounce([noticeKey(notice.id), outbox.list], args)) === 1;
      outbox.ring();
      return isNew;
    },
    source: { kind: "notice", outbox, atOnce: 1, visibilityTimeoutMs: 30_000, read },
  };
}
