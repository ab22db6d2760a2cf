import { randomBytes } from "node:crypto";
import * as z from "zod";
import { defineRecord, objectOf } from "./define-record.ts";
import type { Outbox } from "./outbox.ts";
import { wakeLua } from "./pending.ts";
import { type Fields, type RedisClient, defineScript, fieldsNamed, redisTimeLua } from "./redis.ts";
import { shownIn } from "./shown.ts";

/**
 * A member joins the open board of its place, or starts a new one. It can't join when its own
 * message was posted or may have been, when it is on a board already, or when it has left one.
 *
 * KEYS member, the open board of the place, new board, pending
 * ARGV member, ID for a new board, place, how long a board takes members (ms), the most members,
 * gathering time (ms), how long it is kept (ms), key prefix of boards, prefix of boards on the
 * pending list
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

/**
 * Takes a member off its board.
 *
 * KEYS member, pending   ARGV the member's messages on the pending list, board
 * → 1 when it has left, 0 when it wasn't on this board
 */
const leave = `${redisTimeLua}${wakeLua}
if redis.call('HGET', KEYS[1], 'said:card') ~= 'shared ' .. ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'said:card', '', 'alone', '1')
redis.call('HDEL', KEYS[1], 'card')
wake(KEYS[2], ARGV[1])
return 1
`;

/**
 * Marks a board as changed. Before a board is posted, a member's end waits like any other change,
 * so that it doesn't cut the gathering time short.
 *
 * KEYS board, pending   ARGV the board on the pending list, whether it is updated at once (0|1),
 * how long it is kept (ms)
 * → 0 when the board is gone
 */
const touch = `${redisTimeLua}${wakeLua}
local board = redis.call('HMGET', KEYS[1], 'place', 'said:card')
if not board[1] then return 0 end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[2] == '1' and (board[2] or '') ~= '' then wake(KEYS[2], ARGV[1])
else redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1]) end
return 1
`;

/** The size that marks a closed board. */
const closed = "";

export interface BoardPlace {
  channelId: string;
  threadTs?: string;
}

export const boardPlace = defineRecord({
  name: "place of a board",
  schema: objectOf<BoardPlace>({ channelId: z.string(), threadTs: z.string().exactOptional() }),
});

/**
 * One message for several members of a place, rendered from all of them: the shared card of
 * requests, the overview of alerts, or the feed of a channel.
 */
export interface Board {
  id: string;
  place: BoardPlace;
  /** Redis time (ms). */
  createdAt: number;
  revision: number;
  /** All members in the order in which they joined, including those that have left. */
  memberIds: readonly string[];
  /** True when the board takes no more members, whatever its age and size. */
  isClosed: boolean;
  delivered: ReturnType<typeof shownIn>;
}

/** Undefined when the board is gone, or nobody can read where it stands. */
export function parseBoard(id: string, fields: Fields): Board | undefined {
  const { createdAt, revision, size } = fields;
  const place = fields["place"] ? boardPlace.parse(fields["place"], id) : undefined;
  if (!place) return undefined;
  const members = fieldsNamed("member:", fields).toSorted(([, a], [, b]) => Number(a) - Number(b));
  return {
    id,
    place,
    createdAt: Number(createdAt),
    revision: Number(revision),
    memberIds: members.map(([member]) => member),
    isClosed: size === closed,
    delivered: shownIn(fields),
  };
}

/** The ID of the board that shows this member. */
export const boardOf = ({ marks }: Pick<ReturnType<typeof shownIn>, "marks">): string | undefined =>
  /^shared (.+)/.exec(marks["card"] ?? "")?.[1];

export type Boards = ReturnType<typeof createBoards>;

/**
 * Boards of one kind. A member is a hash. The mark that guards its own message also names the board
 * that shows it:
 *
 *     "" ──► posting <since> ──► <ts>    a message of its own
 *      └───► shared <board>              on a board
 *                 └──► "", alone         left the board: a message of its own, and no board again
 *
 * Each of these moves is one script, so a member either has its own message or is on one board,
 * never both. A process that dies in between leaves either nothing or a board that is due.
 */
export function createBoards(
  redis: RedisClient,
  options: {
    /** Holds the boards' hashes and the list of boards that must be sent to Slack. */
    outbox: Outbox;
    /** The key of a member's hash. */
    memberKey(id: string): string;
    /** The key that names the open board of a place. `threadTs` is empty outside of threads. */
    openKey(channelId: string, threadTs: string): string;
    /** The first letter of each board's ID. */
    letter: string;
    /** How long a board takes more members (ms). */
    opensForMs: number;
    /** The most members that a board takes; unlimited by default. */
    mostMembers?: number;
    /**
     * How long a new board waits for more members before it is posted, so that one post serves all
     * (ms).
     */
    gatherMs?: number;
    /** How long a board is kept after the last change of a member (ms). */
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

    /** Resolves with false when the member can't join. */
    async join(memberId: string, place: BoardPlace): Promise<boolean> {
      const id = `${letter}-${randomBytes(9).toString("base64url")}`;
      const open = openKey(place.channelId, place.threadTs ?? "");
      const keys = [memberKey(memberId), open, outbox.hashOf(id), outbox.list];
      const limits = [opensForMs, mostMembers, gatherMs, keptMs];
      const prefixes = [outbox.hashOf(""), outbox.memberOf("")];
      const args = [memberId, id, boardPlace.write(place), ...limits, ...prefixes];
      const joined = String(await runJoin(keys, args));
      if (joined !== "") outbox.wake(joined);
      return joined !== "";
    },

    /**
     * A member has changed. Once the board is shown, a member's end updates it at once, even while
     * an edit waits. Resolves with false when the board is gone, which means that nothing shows the
     * member.
     */
    async touch(id: string, isEnd: boolean): Promise<boolean> {
      const keys = [outbox.hashOf(id), outbox.list];
      const isThere = (await runTouch(keys, [outbox.memberOf(id), isEnd ? 1 : 0, keptMs])) === 1;
      if (isThere) outbox.wake(id);
      return isThere;
    },

    /**
     * Takes no more members from now on. Resolves with false, and stays open, when the board has
     * grown beyond `size`.
     */
    async close(id: string, size?: number): Promise<boolean> {
      if (size !== undefined) return outbox.mark(id, "size", String(size), closed);
      await outbox.remember(id, { size: closed });
      return true;
    },

    /**
     * The member leaves the board. From now on it gets messages of its own, which its own outbox
     * sends.
     */
    async leave(memberId: string, id: string, members: Outbox): Promise<void> {
      await runLeave([memberKey(memberId), members.list], [members.memberOf(memberId), id]);
      members.wake(memberId);
    },
  };
}
