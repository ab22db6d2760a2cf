import { randomBytes } from "node:crypto";
import { type Outbox, createOutbox } from "../../redis/outbox.ts";
import {
  type Fields,
  type Keys,
  type RedisClient,
  defineScript,
  redisTimeLua,
} from "../../redis/redis.ts";
import { membersIn, shownIn } from "../../redis/shown.ts";
import { pendingKinds } from "./scripts.ts";

const pendingKind = "shared-card";

/**
 * A request joins the open card of its place, or begins one. Not when its own card was posted, or may have been.
 *
 * KEYS request, open, new card, pending
 * ARGV request, id for a new card, place, how long a card takes more (ms), how many at most, gathering time (ms), how long
 *      it is kept (ms), key prefix of cards
 * → the id of the card, '' when the request can't join
 */
const join = `${redisTimeLua}
local r = redis.call('HMGET', KEYS[1], 'state', 'said:card', 'alone')
if not r[1] or (r[2] or '') ~= '' or r[3] then return '' end
local id = redis.call('GET', KEYS[2])
local size = id and tonumber(redis.call('HGET', ARGV[8] .. id, 'size') or '')
if not size or size >= tonumber(ARGV[5]) then
  id = ARGV[2]
  redis.call('HSET', KEYS[3], 'place', ARGV[3], 'createdAt', now)
  redis.call('SET', KEYS[2], id, 'PX', ARGV[4])
  redis.call('ZADD', KEYS[4], now + ARGV[6], '${pendingKind} ' .. id)
else
  redis.call('ZADD', KEYS[4], 'NX', now, '${pendingKind} ' .. id)
end
local card = ARGV[8] .. id
redis.call('HSET', card, 'member:' .. ARGV[1], redis.call('HINCRBY', card, 'size', 1))
redis.call('HINCRBY', card, 'revision', 1)
redis.call('PEXPIRE', card, ARGV[7])
redis.call('HSET', KEYS[1], 'said:card', 'shared ' .. id)
return id
`;

/** KEYS request, pending   ARGV request, id of the card → 1 when it has left */
const leave = `${redisTimeLua}
if redis.call('HGET', KEYS[1], 'said:card') ~= 'shared ' .. ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'said:card', '', 'alone', '1')
redis.call('HDEL', KEYS[1], 'card')
redis.call('ZADD', KEYS[2], now, '${pendingKinds.messages} ' .. ARGV[1])
return 1
`;

/** How long a card takes more requests (ms), and how many: a phone shows no more, and Slack takes some 13,000 characters. */
const opensForMs = 10_000;
const mostMembers = 60;
/** Before it is posted, so that one post serves all (ms). */
const gatherMs = 700;
const keptMs = 7 * 24 * 3600_000;

/** The size of a card that no request joins any more. */
const dissolved = "";

/** One message for several requests of a place where more is due than Slack takes. */
export interface SharedCard {
  id: string;
  place: { channelId: string; threadTs?: string };
  createdAt: number;
  revision: number;
  /** IDs of its requests, in the order in which they joined; those that have left too. */
  memberIds: readonly string[];
  /** Its requests get messages of their own again. */
  isDissolved: boolean;
  delivered: ReturnType<typeof shownIn>;
}

/** Undefined when it is gone. */
export function parseSharedCard(id: string, fields: Fields): SharedCard | undefined {
  if (!fields["place"]) return undefined;
  return {
    id,
    place: JSON.parse(fields["place"]) as SharedCard["place"],
    createdAt: Number(fields["createdAt"]),
    revision: Number(fields["revision"]),
    memberIds: membersIn(fields),
    isDissolved: fields["size"] === dissolved,
    delivered: shownIn(fields),
  };
}

/** `requests`: their outbox. */
export function createSharedCards(redis: RedisClient, key: Keys, requests: Outbox) {
  const runJoin = defineScript(redis, "gatehouseShareJoin", join);
  const runLeave = defineScript(redis, "gatehouseShareLeave", leave);
  const cardKey = (id: string) => key("shared", id);
  const openKey = ({ channelId, threadTs = "" }: SharedCard["place"]) =>
    key("sharing", channelId, threadTs);
  const outbox = createOutbox(redis, key, pendingKind, cardKey);
  return {
    outbox,

    /** False when the request can't join. */
    async join(requestId: string, place: SharedCard["place"]): Promise<boolean> {
      const id = `s-${randomBytes(9).toString("base64url")}`;
      const keys = [requests.hashOf(requestId), openKey(place), cardKey(id), outbox.list];
      const limits = [opensForMs, mostMembers, gatherMs, keptMs];
      const args = [requestId, id, JSON.stringify(place), ...limits, cardKey("")];
      const joined = String(await runJoin(keys, args));
      if (joined !== "") outbox.wake(joined);
      return joined !== "";
    },

    /** One of its requests has moved. Once it is shown, an end waits for no edit. */
    async touch(id: string, isEnd: boolean): Promise<void> {
      const [place, mark] = await redis.hmget(cardKey(id), "place", "said:card");
      if (!place) return;
      await redis.multi().hincrby(cardKey(id), "revision", 1).pexpire(cardKey(id), keptMs).exec();
      await (isEnd && mark ? outbox.later(id, 0) : outbox.expect(id));
    },

    /** No request joins it any more. False when it grew beyond `size`. */
    async dissolve({ id }: SharedCard, size?: number): Promise<boolean> {
      if (size !== undefined) return outbox.mark(id, "size", String(size), dissolved);
      await outbox.remember(id, { size: dissolved });
      return true;
    },

    /** The request gets messages of its own. */
    async leave(requestId: string, id: string): Promise<void> {
      await runLeave([requests.hashOf(requestId), requests.list], [requestId, id]);
      requests.wake(requestId);
    },
  };
}
