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
  /** Of a notice that a script announced with facts in place of a message. */
  render?(facts: string): Promise<Message>;
}): { announce: Announce; source: Source } {
  const { redis, key, render = () => Promise.reject(new Error("facts without words")) } = options;
  const { list, hashOf: noticeKey } = noticeKeys(key);
  const outbox = createOutbox(redis, list, noticeKey);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);

  async function read(id: string, fields: Fields): Promise<Owes | undefined> {
    const mark = fields["said:notice"];
    const owes = { createdAt: Number(fields["at"]), revision: 0 };
    if (!fields["notice"]) return undefined;
    const notice = JSON.parse(fields["notice"]) as Notice & { facts?: string };
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
      render: () => (notice.facts === undefined ? message : render(notice.facts)),
      closed: async (error) => (error === unreadyPicture ? offerAgain(id) : undefined),
    };
    return { ...owes, messages: [owed], isWhole: true };
  }

  async function offerAgain(id: string): Promise<number> {
    const offers = await redis.hincrby(noticeKey(id), "offers", 1);
    if (offers >= maxOffers) await outbox.remember(id, { picture: noPicture });
    return unreadyMs;
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
