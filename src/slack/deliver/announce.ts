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

/** Within a script that has `now`: announces a notice, and returns 1 when it is new. */
export const announceLua = `
local function announce(list, hash, id, notice, keptMs)
  if redis.call('HSETNX', hash, 'notice', notice) == 0 then return 0 end
  redis.call('HSET', hash, 'at', now)
  redis.call('PEXPIRE', hash, keptMs)
  redis.call('ZADD', list, now, id)
  return 1
end
`;

/** KEYS notice, notices   ARGV notice, id, kept for (ms) → 1 when it is new */
const announceScript = `${redisTimeLua}${announceLua}
return announce(KEYS[2], KEYS[1], ARGV[2], ARGV[1], ARGV[3])
`;

export const noticeKeys = (key: Keys) => ({
  list: key("notices"),
  hashOf: (id: string) => key("notice", id),
});

export const noticeKeptMs = 7 * 24 * 3600_000;

/** Stores notices, and posts one message for each, in order. */
export function createNotices(options: {
  redis: RedisClient;
  key: Keys;
  /** Of a notice that a script announced with facts in place of a message. */
  render?(facts: string): Promise<Message>;
}): { announce: Announce; source: Source } {
  const { redis, key, render = () => Promise.reject(new Error("facts without words")) } = options;
  const { list, hashOf: noticeKey } = noticeKeys(key);
  const outbox = createOutbox(redis, list, noticeKey);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);

  async function read(_id: string, fields: Fields): Promise<Owes | undefined> {
    if (!fields["notice"]) return undefined;
    const notice = JSON.parse(fields["notice"]) as Notice & { facts?: string };
    const owed: Owed = {
      key: "notice",
      mark: fields["said:notice"],
      place: notice,
      render: () => (notice.facts === undefined ? notice.message : render(notice.facts)),
    };
    return { createdAt: Number(fields["at"]), revision: 0, messages: [owed] };
  }

  return {
    async announce(notice) {
      const args = [JSON.stringify(notice), notice.id, noticeKeptMs];
      const isNew = (await runAnnounce([noticeKey(notice.id), outbox.list], args)) === 1;
      outbox.ring();
      return isNew;
    },
    source: { kind: "notice", outbox, atOnce: 1, visibilityTimeoutMs: 30_000, read },
  };
}
