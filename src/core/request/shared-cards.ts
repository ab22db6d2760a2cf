import { type Boards, createBoards } from "../../redis/board.ts";
import { type Outbox, createOutbox } from "../../redis/outbox.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";

/**
 * Creates the shared cards: one message for several requests of a place, where more messages are
 * due than Slack takes. A card takes requests for ten seconds, and only so many, because a phone
 * shows no more and Slack takes some 13,000 characters.
 */
export const createSharedCards = (redis: RedisClient, key: Keys, requests: Outbox): Boards =>
  createBoards(redis, {
    outbox: createOutbox(redis, key, "shared-card", (id) => key("shared", id)),
    memberKey: requests.hashOf,
    openKey: (...place) => key("sharing", ...place),
    letter: "s",
    opensForMs: 10_000,
    mostMembers: 60,
    gatherMs: 700,
    keptMs: 7 * 24 * 3600_000,
  });
