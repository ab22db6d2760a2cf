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
import { type Picture, withPicture } from "./picture.ts";
import { isSaid, type Owed, unreadyPicture } from "./post-once.ts";

/** A message without a request: a freeze, an alarm, the head of the audit trail, a digest. */
export interface Notice {
  /** Deduplicates: the same id, from any process, is the same notice. */
  id: string;
  channelId: string;
  threadTs?: string;
  message: Message;
  /** Left out when Slack doesn't process it in time. */
  picture?: Picture;
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
/** Slack may still be processing the picture: the wait between posts, and how many. */
const unreadyMs = 700;
const maxOffers = 15;
const noPicture = "none";

/** Stores notices, and posts one message for each, in order. */
export function createNotices(options: {
  redis: RedisClient;
  key: Keys;
  /** Draws and uploads; undefined when that fails. */
  sendPicture?(picture: Picture): Promise<string | undefined>;
}): { announce: Announce; source: Source } {
  const { redis, key } = options;
  const noticeKey = (id: string) => key("notice", id);
  const outbox = createOutbox(redis, key("notices"), noticeKey);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);

  async function read(id: string, fields: Fields): Promise<Owes | undefined> {
    const mark = fields["said:notice"];
    const owes = { createdAt: Number(fields["at"]), revision: 0 };
    if (!fields["notice"]) return undefined;
    const notice = JSON.parse(fields["notice"]) as Notice;
    const fileId = notice.picture ? fields["picture"] : noPicture;
    // After the upload the notice is claimed again: another process may have claimed it meanwhile
    if (notice.picture && fileId === undefined && !isSaid(mark)) {
      const sent = await options.sendPicture?.(notice.picture);
      await outbox.remember(id, { picture: sent ?? noPicture });
      return { ...owes, messages: [], waitMs: 1 };
    }
    const message =
      notice.picture && fileId && fileId !== noPicture
        ? withPicture(notice.message, notice.picture, fileId)
        : notice.message;
    const owed: Owed = {
      key: "notice",
      mark,
      place: notice,
      render: () => message,
      closed: async (error) => (error === unreadyPicture ? offerAgain(id) : undefined),
    };
    return { ...owes, messages: [owed] };
  }

  async function offerAgain(id: string): Promise<number> {
    const offers = await redis.hincrby(noticeKey(id), "offers", 1);
    if (offers >= maxOffers) await outbox.remember(id, { picture: noPicture });
    return unreadyMs;
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
