import { randomBytes } from "node:crypto";
import type { Outbox } from "./outbox.ts";
import { type Fields, type RedisClient, defineScript, fieldsNamed, redisTimeLua } from "./redis.ts";
import { shownIn } from "./shown.ts";

/**
 * A member joins the open board of its place, or begins one. Not when its own message was posted, or may have been, nor when it
 * is on a board, or has left one.
 *
 * KEYS member, the open board of the place, new board, pending
 * ARGV member, ID for a new board, place, how long a board takes members (ms), how many at most, gathering time (ms), how long
 *      it is kept (ms), key prefix of boards, prefix of boards on the pending list
 * → the ID of the board, '' when the member can't join
 */
const join = `${redisTimeLua}
if redis.call('EXISTS', KEYS[1]) == 0 then return '' end
local own = redis.call('HMGET', KEYS[1], 'said:card', 'alone')
if (own[1] or '') ~= '' or own[2] then return '' end
local id = redis.call('GET', KEYS[2])
local size = id and tonumber(redis.call('HGET', ARGV[8] .. id, 'size') or '')
if not size or size >= tonumber(ARGV[5]) then
  id = ARGV[2]
  redis.call('HSET', KEYS[3], 'place', ARGV[3], 'createdAt', now)
  redis.call('SET', KEYS[2], id, 'PX', ARGV[4])
  redis.call('ZADD', KEYS[4], now + ARGV[6], ARGV[9] .. id)
else
  redis.call('ZADD', KEYS[4], 'NX', now, ARGV[9] .. id)
end
local board = ARGV[8] .. id
redis.call('HSET', board, 'member:' .. ARGV[1], redis.call('HINCRBY', board, 'size', 1))
redis.call('HINCRBY', board, 'revision', 1)
redis.call('PEXPIRE', board, ARGV[7])
redis.call('HSET', KEYS[1], 'said:card', 'shared ' .. id)
return id
`;

/** KEYS member, pending   ARGV the member's messages on the pending list, board → 1 when it has left */
const leave = `${redisTimeLua}
if redis.call('HGET', KEYS[1], 'said:card') ~= 'shared ' .. ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'said:card', '', 'alone', '1')
redis.call('HDEL', KEYS[1], 'card')
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 1
`;

/**
 * Before a board is posted, an end waits like any other change: it must not cut the gathering short.
 *
 * KEYS board, pending   ARGV the board on the pending list, whether it waits for no edit (0|1), how long it is kept (ms) → 0 when the board is gone
 */
const touch = `${redisTimeLua}
local board = redis.call('HMGET', KEYS[1], 'place', 'said:card')
if not board[1] then return 0 end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[2] == '1' and (board[2] or '') ~= '' then redis.call('ZADD', KEYS[2], now, ARGV[1])
else redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1]) end
return 1
`;

/** The size of a board that is closed. */
const closed = "";

export interface BoardPlace {
  channelId: string;
  threadTs?: string;
}

/**
 * One message for several members of a place, rendered from them: the shared card of requests, the overview of alerts, the feed of
 * a channel.
 */
export interface Board {
  id: string;
  place: BoardPlace;
  /** Redis time (ms). */
  createdAt: number;
  revision: number;
  /** In the order in which they joined; those that have left too. */
  memberIds: readonly string[];
  /** Nobody joins it any more, whatever its time and its size. */
  isClosed: boolean;
  delivered: ReturnType<typeof shownIn>;
}

/** Undefined when it is gone. */
export function parseBoard(id: string, fields: Fields): Board | undefined {
  const { place, createdAt, revision, size } = fields;
  if (!place) return undefined;
  const members = fieldsNamed("member:", fields).toSorted(([, a], [, b]) => Number(a) - Number(b));
  return {
    id,
    place: JSON.parse(place) as BoardPlace,
    createdAt: Number(createdAt),
    revision: Number(revision),
    memberIds: members.map(([member]) => member),
    isClosed: size === closed,
    delivered: shownIn(fields),
  };
}

/** The ID of the board that shows this one. */
export const boardOf = ({ said }: Pick<ReturnType<typeof shownIn>, "said">): string | undefined =>
  /^shared (.+)/.exec(said["card"] ?? "")?.[1];

export type Boards = ReturnType<typeof createBoards>;

/**
 * Boards of one kind. A member is a hash, and the mark that guards its own message names the board that shows it:
 *
 *     "" ──► posting <since> ──► <ts>    a message of its own
 *      └───► shared <board>              on a board
 *                 └──► "", alone         it has left: a message of its own, and no board any more
 *
 * One script makes each of these moves, so a member has a message of its own or is on one board, never both, and a process that
 * dies leaves either nothing or a board that is due.
 */
export function createBoards(
  redis: RedisClient,
  options: {
    /** Of the boards: their hashes, and those that Slack lacks. */
    outbox: Outbox;
    /** The hash of a member. */
    memberKey(id: string): string;
    /** The key that names the open board of a place. Outside of threads `threadTs` is empty. */
    openKey(channelId: string, threadTs: string): string;
    /** Begins the ID of each board. */
    letter: string;
    /** How long a board takes more members (ms). */
    opensForMs: number;
    /** By default any number. */
    mostMembers?: number;
    /** Before it is posted, so that one post serves all (ms). */
    gatherMs?: number;
    /** After the last change of a member (ms). */
    keptMs: number;
  },
) {
  const { outbox, memberKey, openKey, letter, opensForMs, keptMs } = options;
  const { mostMembers = Number.MAX_SAFE_INTEGER, gatherMs = 0 } = options;
  const runJoin = defineScript(redis, "gatehouseBoardJoin", join);
  const runLeave = defineScript(redis, "gatehouseBoardLeave", leave);
  const runTouch = defineScript(redis, "gatehouseBoardTouch", touch);

  return {
    outbox,

    /** False when the member can't join. */
    async join(memberId: string, place: BoardPlace): Promise<boolean> {
      const id = `${letter}-${randomBytes(9).toString("base64url")}`;
      const open = openKey(place.channelId, place.threadTs ?? "");
      const keys = [memberKey(memberId), open, outbox.hashOf(id), outbox.list];
      const limits = [opensForMs, mostMembers, gatherMs, keptMs];
      const prefixes = [outbox.hashOf(""), outbox.memberOf("")];
      const args = [memberId, id, JSON.stringify(place), ...limits, ...prefixes];
      const joined = String(await runJoin(keys, args));
      if (joined !== "") outbox.wake(joined);
      return joined !== "";
    },

    /**
     * A member has moved. Once the board is shown, an end waits for no edit that waits. False when the board is gone, so that nothing
     * shows the member.
     */
    async touch(id: string, isEnd: boolean): Promise<boolean> {
      const keys = [outbox.hashOf(id), outbox.list];
      const isThere = (await runTouch(keys, [outbox.memberOf(id), isEnd ? 1 : 0, keptMs])) === 1;
      if (isThere) outbox.wake(id);
      return isThere;
    },

    /** Nobody joins it any more. False when it grew beyond `size`. */
    async close(id: string, size?: number): Promise<boolean> {
      if (size !== undefined) return outbox.mark(id, "size", String(size), closed);
      await outbox.remember(id, { size: closed });
      return true;
    },

    /** The member gets messages of its own, which its outbox owes. */
    async leave(memberId: string, id: string, members: Outbox): Promise<void> {
      await runLeave([memberKey(memberId), members.list], [members.memberOf(memberId), id]);
      members.wake(memberId);
    },
  };
}
