import { type AuditEntry, readAudit } from "../../audit/trail.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";

/** A freeze or a thaw, by whom, as they are called. */
export interface SwitchFact {
  is: "freeze" | "thaw";
  by: string;
  reason: string;
  at: number;
}

/** Who signed the review of a break-glass use. */
export interface SignedReview {
  request: string;
  by: string;
  at: number;
}

export type Events = Awaited<ReturnType<ReturnType<typeof createEventReader>>>;

/** Freezes, thaws, and reviews of a busy day; older ones aren't read. */
const maxRecords = 1_000;
const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const told = ["freeze", "thaw", "review-signed"];

/** Reads from the audit trail what happened since a time (ms) and is no request. */
export function createEventReader(options: {
  redis: RedisClient;
  key: Keys;
  personName?: ((id: string) => Promise<string>) | undefined;
}) {
  const { redis, key, personName } = options;

  /** The trail keeps people by ID; a freeze by Gatehouse is by its name. */
  async function nameOf(who: unknown): Promise<string> {
    const id = textOf(who);
    return personName && /^[UW][A-Z0-9]{2,}$/.test(id) ? personName(id) : id;
  }

  return async (since: number) => {
    const { entries } = await readAudit({
      redis,
      key,
      what: told,
      after: since,
      most: maxRecords,
    });
    const ofKind = (...kinds: string[]) =>
      entries.filter(({ record }) => kinds.includes(textOf(record["what"])));
    const switches = ofKind("freeze", "thaw").map(
      async ({ at, record }: AuditEntry): Promise<SwitchFact> => ({
        is: record["what"] === "freeze" ? "freeze" : "thaw",
        by: await nameOf(record["who"]),
        reason: textOf(record["why"]),
        at,
      }),
    );
    const signed = ofKind("review-signed").map(async ({ at, record }): Promise<SignedReview> => ({
      request: textOf(record["request"]),
      by: await nameOf(record["who"]),
      at,
    }));
    return {
      switches: await Promise.all(switches),
      signed: await Promise.all(signed),
    };
  };
}
