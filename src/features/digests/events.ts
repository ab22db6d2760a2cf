import { type AuditEntry, readAudit } from "../../audit/trail.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";

/** A freeze or a thaw. `by` is the person's name. */
export interface SwitchFact {
  is: "freeze" | "thaw";
  by: string;
  reason: string;
  at: number;
}

/** A signed review of a break-glass use. `by` is the signer's name. */
export interface SignedReview {
  request: string;
  by: string;
  at: number;
}

export type Events = Awaited<ReturnType<ReturnType<typeof createEventReader>>>;

/** Enough for the freezes, thaws and reviews of a busy day. Older ones aren't read. */
const maxRecords = 1_000;
const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const told = ["freeze", "thaw", "review-signed"];

/** Creates a reader of the audit trail for what happened since a time (ms) and isn't a request. */
export function createEventReader(options: {
  redis: RedisClient;
  key: Keys;
  personName?: ((id: string) => Promise<string>) | undefined;
}) {
  const { redis, key, personName } = options;

  /** The trail names people by ID, and Gatehouse's own freezes by its name. */
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
