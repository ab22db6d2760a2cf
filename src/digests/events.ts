import { type AuditEntry, readAudit } from "../audit/trail.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

/** An alert that fires, as its source names it and its VM. */
export interface FiringAlert {
  key: string;
  name: string;
  label: string;
  /** Undefined where the label names no one VM. */
  vmId: string | undefined;
  since: number;
  /** When its source was heard of last, where it has been silent for long. */
  quietSince?: number | undefined;
}

/** A freeze or a thaw, by whom, as they are called. */
export interface SwitchFact {
  is: "freeze" | "thaw";
  by: string;
  reason: string;
  at: number;
}

/** An alert that its source says has ended. */
export interface EndedAlert extends FiringAlert {
  endedAt: number;
}

/** Who signed the review of a break-glass use. */
export interface SignedReview {
  request: string;
  by: string;
  at: number;
}

export type Events = Awaited<ReturnType<ReturnType<typeof createEventReader>>>;

/** Freezes, thaws, and deliveries of a busy day; older ones aren't read. */
const maxRecords = 1_000;
const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const told = ["freeze", "thaw", "review-signed", "alert"];

/** Reads from the audit trail what happened since a time (ms) and is no request. */
export function createEventReader(options: {
  redis: RedisClient;
  key: Keys;
  alerts: { endedSince?(ids: readonly string[], at: number): Promise<readonly EndedAlert[]> };
  personName?: ((id: string) => Promise<string>) | undefined;
}) {
  const { redis, key, alerts, personName } = options;

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
    const groups = new Set(ofKind("alert").map(({ record }) => textOf(record["alert"])));
    return {
      switches: await Promise.all(switches),
      signed: await Promise.all(signed),
      endedAlerts: (await alerts.endedSince?.([...groups], since)) ?? [],
    };
  };
}
