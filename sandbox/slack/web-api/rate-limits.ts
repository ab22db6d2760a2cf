/** `count` calls per `perMs`, and as many at once as `burst` (default: `count`). */
export interface RateLimit {
  count: number;
  perMs: number;
  burst?: number;
  by: "workspace" | "channel";
  /** Methods of one pool count together. */
  pool?: string;
}

export type RateLimits = "slack" | "off" | Record<string, RateLimit>;

const perMinute = (count: number): RateLimit => ({ count, perMs: 60_000, by: "workspace" });
const [tier2, tier3, tier4] = [perMinute(20), perMinute(50), perMinute(100)];

/** Measured: the methods about user groups have one limit together, whatever their pages say. */
const userGroups: RateLimit = { ...tier2, pool: "usergroups" };

/** https://docs.slack.dev/apis/web-api/rate-limits */
const slack: Record<string, RateLimit> = {
  "apps.connections.open": tier3,
  "bots.info": tier3,
  "chat.delete": tier3,
  "chat.getPermalink": { count: 600, perMs: 60_000, by: "workspace" },
  "chat.postEphemeral": tier4,
  // One message per second and channel; short bursts are let through.
  "chat.postMessage": { count: 1, perMs: 1000, burst: 5, by: "channel" },
  "chat.update": tier3,
  "conversations.history": tier3,
  "conversations.info": tier3,
  "conversations.join": tier3,
  "conversations.list": tier2,
  "conversations.members": tier4,
  "conversations.open": tier3,
  "conversations.replies": tier3,
  "files.completeUploadExternal": tier4,
  "files.delete": tier3,
  "files.getUploadURLExternal": tier4,
  "files.info": tier4,
  "usergroups.list": userGroups,
  "usergroups.users.list": userGroups,
  "users.info": tier4,
  "users.list": tier2,
  "views.open": tier4,
  "views.publish": tier4,
  "views.push": tier4,
  "views.update": tier4,
  response_url: { count: 1, perMs: 1000, burst: 5, by: "channel" },
};

/** Counts calls like Slack does. */
export class RateCounter {
  #limits: Record<string, RateLimit>;
  readonly #fill = new Map<string, { used: number; at: number }>();

  constructor(limits: RateLimits) {
    this.#limits = tableOf(limits);
  }

  set(limits: RateLimits): void {
    this.#limits = tableOf(limits);
    this.#fill.clear();
  }

  /** Counts one call at `now` (ms). Returns the seconds to wait when it is one too many. */
  take(method: string, channel: string, now: number): number | undefined {
    const limit = this.#limits[method];
    if (!limit) return undefined;
    const name = limit.pool ?? method;
    const key = limit.by === "channel" ? `${name} ${channel}` : name;
    const rate = limit.count / limit.perMs;
    const most = limit.burst ?? limit.count;
    const before = this.#fill.get(key) ?? { used: 0, at: now };
    const used = Math.max(0, before.used - (now - before.at) * rate);
    if (used + 1 > most + 1e-9) return Math.max(1, Math.ceil((used + 1 - most) / rate / 1000));
    this.#fill.set(key, { used: used + 1, at: now });
    return undefined;
  }
}

function tableOf(limits: RateLimits): Record<string, RateLimit> {
  return limits === "slack" ? slack : limits === "off" ? {} : limits;
}
