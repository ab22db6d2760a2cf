import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import { redisNow } from "../requests/redis-now.ts";
import * as scripts from "../requests/scripts.ts";
import { startRounds } from "../rounds.ts";
import type { Pace } from "./pace.ts";
import { type Picture, withPicture } from "./picture.ts";
import { createPostOnce, isSaid, unreadyPicture } from "./post-once.ts";
import type { Web } from "./web.ts";

/** A message that belongs to no request: a freeze, an alarm, the head of the audit trail, a digest. */
export interface Notice {
  /** Names what is told: telling it again, from any process, is the same notice. */
  id: string;
  channelId: string;
  threadTs?: string;
  message: Message;
  /** Goes with it where Slack takes it in time. */
  picture?: Picture;
}

export interface Announcer {
  /** Written down when it resolves; posted once, soon or when Slack is back. False when it was announced before. */
  announce(notice: Notice): Promise<boolean>;
  close(): Promise<void>;
}

/** KEYS notice, notices   ARGV notice, id, how long it is kept (ms) → 1 when it is new */
const announceScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('HSETNX', KEYS[1], 'notice', ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'at', now)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], now, ARGV[2])
return 1
`;

const keptMs = 7 * 24 * 3600_000;
const hiddenMs = 30_000;
/** How often, and how often in all, a message with a picture is offered to Slack, which may still be processing it. */
const unreadyMs = 700;
const mostOffers = 15;
const noPicture = "none";

export function startAnnouncer(options: {
  redis: RedisClient;
  key: Keys;
  web: Web;
  pace: Pace;
  log: Log;
  everyMs: number;
  /** Draws and uploads; undefined when that can't be done. */
  sendPicture?(picture: Picture): Promise<string | undefined>;
}): Announcer {
  const { redis, key, log, everyMs } = options;
  const noticeKey = (id: string) => key("notice", id);
  const runTakeDue = defineScript(redis, "gatehouseTakeNotices", scripts.takeDue);
  const runAnnounce = defineScript(redis, "gatehouseAnnounce", announceScript);
  const runMark = defineScript(redis, "gatehouseMarkNotice", scripts.markDelivered);
  const postOnce = createPostOnce({
    ...options,
    remember: async (id, fields) => void (await redis.hset(noticeKey(id), fields)),
    mark: async (id, ...marked) => (await runMark([noticeKey(id)], marked)) === 1,
    now: () => redisNow(redis),
  });

  async function deliver(id: string): Promise<void> {
    const fields = await redis.hgetall(noticeKey(id));
    if (!fields["notice"] || isSaid(fields["said:notice"]))
      return void (await redis.zrem(key("notices"), id));
    const notice = JSON.parse(fields["notice"]) as Notice;
    const fileId = notice.picture ? fields["picture"] : noPicture;
    if (notice.picture && fileId === undefined) return sendAhead(id, notice.picture);
    const message =
      notice.picture && fileId && fileId !== noPicture
        ? withPicture(notice.message, notice.picture, fileId)
        : notice.message;
    const subject = {
      id,
      createdAt: Number(fields["at"]),
      said: { notice: fields["said:notice"] ?? "" },
    };
    const posted = await postOnce(subject, "notice", message, notice);
    if (posted.is === "later") return comeBack(id, posted.ms);
    if (posted.is === "closed" && posted.error === unreadyPicture) return offerAgain(id);
    if (posted.is === "closed")
      log.error("notice.nowhere-to-say", { notice: id, error: posted.error });
    await redis.zrem(key("notices"), id);
  }

  /** The picture first, and the post in a round of its own: nobody else may take the notice while it is being uploaded. */
  async function sendAhead(id: string, picture: Picture): Promise<void> {
    const fileId = await options.sendPicture?.(picture);
    await redis.hset(noticeKey(id), "picture", fileId ?? noPicture);
    await comeBack(id, 0);
  }

  async function offerAgain(id: string): Promise<void> {
    const offers = await redis.hincrby(noticeKey(id), "offers", 1);
    if (offers >= mostOffers) await redis.hset(noticeKey(id), "picture", noPicture);
    await comeBack(id, unreadyMs);
  }

  /** By the clock that says what is due: ours may be hours ahead, and it would wait for as long. */
  async function comeBack(id: string, inMs: number): Promise<void> {
    await redis.zadd(key("notices"), (await redisNow(redis)) + Math.ceil(inMs), id);
  }

  async function round(): Promise<void> {
    try {
      const ids = (await runTakeDue([key("notices")], [8, hiddenMs])) as string[];
      // One after the other: what was announced first is said first
      for (const id of ids) await deliver(id);
    } catch (error) {
      log.debug("notice.later", { error });
    }
  }

  const rounds = startRounds("notices", everyMs, round, log);
  return {
    async announce(notice) {
      const args = [JSON.stringify(notice), notice.id, keptMs];
      return (await runAnnounce([noticeKey(notice.id), key("notices")], args)) === 1;
    },
    close: rounds.close,
  };
}
