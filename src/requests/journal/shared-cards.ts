import { randomBytes } from "node:crypto";
import { createOutbox, type Outbox } from "../../redis/due-list.ts";
import {
  type Fields,
  type Keys,
  defineScript,
  type RedisClient,
  redisTimeLua,
} from "../../redis/redis.ts";
import type { StoredRequest } from "./record.ts";

/**
 * A request joins the open card of its place, or begins one. Not when its own card was posted, or may have been: both are
 * decided by the same field.
 *
 * KEYS request, open, new card, outbox
 * ARGV request, id for a new card, place, how long a card takes more (ms), how many at most, gathering time (ms), how long
 *      it is kept (ms), key prefix of cards
 * → the id of the card, '' when the request can't join
 */
const join = `${redisTimeLua}
local r = redis.call('HMGET', KEYS[1], 'state', 'said:card', 'alone')
if not r[1] or (r[2] or '') ~= '' or r[3] then return '' end
local id = redis.call('GET', KEYS[2])
if id and tonumber(redis.call('HGET', ARGV[8] .. id, 'size') or ARGV[5]) >= tonumber(ARGV[5]) then id = false end
if not id then
  id = ARGV[2]
  redis.call('HSET', KEYS[3], 'place', ARGV[3], 'createdAt', now)
  redis.call('SET', KEYS[2], id, 'PX', ARGV[4])
  redis.call('ZADD', KEYS[4], now + ARGV[6], id)
else
  redis.call('ZADD', KEYS[4], 'NX', now, id)
end
local card = ARGV[8] .. id
redis.call('HSET', card, 'member:' .. ARGV[1], redis.call('HINCRBY', card, 'size', 1))
redis.call('HINCRBY', card, 'revision', 1)
redis.call('PEXPIRE', card, ARGV[7])
redis.call('HSET', KEYS[1], 'said:card', 'shared ' .. id)
return id
`;

/** KEYS card, outbox   ARGV id, how long it is kept (ms) */
const touch = `${redisTimeLua}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1])
`;

/** KEYS card, open   ARGV id, its size, or '' for any → 1 when no request joins it any more */
const dissolve = `
if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'size') ~= ARGV[2] then return 0 end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
redis.call('HSET', KEYS[1], 'dissolved', '1')
return 1
`;

/** KEYS request, outbox of requests   ARGV request, id of the card → 1 when it has left */
const leave = `${redisTimeLua}
if redis.call('HGET', KEYS[1], 'said:card') ~= 'shared ' .. ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'said:card', '', 'alone', '1')
redis.call('HDEL', KEYS[1], 'card')
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 1
`;

/** How long a card takes more requests (ms), and how many: a phone shows no more, and Slack takes some 13,000 characters. */
const opensForMs = 10_000;
const mostMembers = 60;
/** Before it is posted, so that one post serves all (ms). */
const gatherMs = 700;
const keptMs = 7 * 24 * 3600_000;

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
  delivered: {
    said: Readonly<Record<string, string>>;
    card?: { channelId: string; ts: string };
    face: string;
  };
}

/** Undefined when it is gone. */
export function parseSharedCard(id: string, fields: Fields): SharedCard | undefined {
  if (!fields["place"]) return undefined;
  const named = (prefix: string) =>
    Object.entries(fields)
      .filter(([field]) => field.startsWith(prefix))
      .map(([field, value]) => [field.slice(prefix.length), value] as const);
  const [channelId, ts] = (fields["card"] ?? "").split(" ");
  return {
    id,
    place: JSON.parse(fields["place"]) as SharedCard["place"],
    createdAt: Number(fields["createdAt"]),
    revision: Number(fields["revision"]),
    memberIds: named("member:")
      .toSorted(([, a], [, b]) => Number(a) - Number(b))
      .map(([member]) => member),
    isDissolved: fields["dissolved"] === "1",
    delivered: {
      said: Object.fromEntries(named("said:")),
      ...(channelId && ts ? { card: { channelId, ts } } : {}),
      face: fields["face"] ?? "",
    },
  };
}

/** The id of the shared card that shows this request. */
export function sharedCardOf({ delivered }: Pick<StoredRequest, "delivered">): string | undefined {
  return /^shared (.+)/.exec(delivered.said["card"] ?? "")?.[1];
}

export type SharedCards = ReturnType<typeof createSharedCards>;

export function createSharedCards(
  redis: RedisClient,
  key: Keys,
  requests: { outbox: Pick<Outbox, "list" | "ring">; key(id: string): string },
) {
  const runJoin = defineScript(redis, "gatehouseShareJoin", join);
  const runTouch = defineScript(redis, "gatehouseShareTouch", touch);
  const runDissolve = defineScript(redis, "gatehouseShareDissolve", dissolve);
  const runLeave = defineScript(redis, "gatehouseShareLeave", leave);
  const cardKey = (id: string) => key("shared", id);
  const openKey = ({ channelId, threadTs = "" }: SharedCard["place"]) =>
    key("sharing", channelId, threadTs);
  const outbox = createOutbox(redis, key("shared-cards"), cardKey);
  return {
    outbox,

    /** False when the request can't join: its own card was posted, or may have been. */
    async join(requestId: string, place: SharedCard["place"]): Promise<boolean> {
      const id = `s-${randomBytes(9).toString("base64url")}`;
      const joined = await runJoin(
        [requests.key(requestId), openKey(place), cardKey(id), outbox.list],
        [
          requestId,
          id,
          JSON.stringify(place),
          opensForMs,
          mostMembers,
          gatherMs,
          keptMs,
          cardKey(""),
        ],
      );
      outbox.ring();
      return joined !== "";
    },

    /** One of its requests has moved. */
    async touch(id: string): Promise<void> {
      await runTouch([cardKey(id), outbox.list], [id, keptMs]);
      outbox.ring();
    },

    /** No request joins it any more. False when it has grown beyond `size` meanwhile. */
    async dissolve({ id, place }: SharedCard, size?: number): Promise<boolean> {
      return (await runDissolve([cardKey(id), openKey(place)], [id, size ?? ""])) === 1;
    },

    /** The request gets messages of its own. */
    async leave(requestId: string, id: string): Promise<void> {
      await runLeave([requests.key(requestId), requests.outbox.list], [requestId, id]);
      requests.outbox.ring();
    },
  };
}
