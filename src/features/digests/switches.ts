import { type AuditEntry, readAudit } from "../../audit/trail.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";

/** A freeze or a thaw, by whom, as they are called. */
export interface SwitchFact {
  is: "freeze" | "thaw";
  by: string;
  reason: string;
  at: number;
}

/** Freezes and thaws of a busy day; older ones aren't read. */
const maxRecords = 1_000;
const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const told = ["freeze", "thaw"];

/** Reads from the audit trail which freezes and thaws there were since a time (ms). */
export function createSwitchReader(options: {
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

  return async (since: number): Promise<readonly SwitchFact[]> => {
    const { entries } = await readAudit({
      redis,
      key,
      what: told,
      after: since,
      most: maxRecords,
    });
    const switches = entries.map(async ({ at, record }: AuditEntry): Promise<SwitchFact> => ({
      is: record["what"] === "freeze" ? "freeze" : "thaw",
      by: await nameOf(record["who"]),
      reason: textOf(record["why"]),
      at,
    }));
    return Promise.all(switches);
  };
}
