import type { Config } from "../config/config.ts";
import { groupChangesKey } from "../audit/stored-policy.ts";
import type { Log } from "../log/log.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { learnIdentity } from "../slack/people/identity.ts";
import { createPeople } from "../slack/people/people.ts";
import { createSharedAnswer } from "../slack/people/shared-answer.ts";
import { groupsNamedIn } from "../slack/people/user-groups.ts";
import { createSharedChannels } from "../slack/shared-channels.ts";
import { createWeb } from "../slack/web.ts";
import type { SlackClock } from "./clock.ts";
import type { observeCalls } from "./observe-calls.ts";
import type { Opened } from "./opened.ts";

/**
 * Creates the client of Slack's Web API, and finds out who Gatehouse and other people are there.
 */
export function openSlack(on: {
  config: Config;
  redis: RedisClient;
  key: Keys;
  log: Log;
  onCall: ReturnType<typeof observeCalls>["slack"];
  onDate: SlackClock["compare"];
  opened: Opened;
}) {
  const { config, redis, key, log, onCall, onDate, opened } = on;
  const { receive } = config.slack;
  const appToken = receive?.mode === "socket" ? receive.secret : undefined;
  const { web, refusal } = createSharedChannels({
    web: createWeb({
      token: () => config.slack.botToken,
      refreshToken: () => config.files.get("SLACK_BOT_TOKEN")?.reread(),
      apiUrl: config.slack.apiUrl,
      log,
      onCall,
      onDate,
    }),
    allowed: () => config.policy.sharedChannels,
    log,
  });
  const identity = opened(learnIdentity(web, { appToken }));
  const people = createPeople({
    web,
    shared: createSharedAnswer({
      redis,
      key,
      name: "user-groups",
      changes: groupChangesKey(key),
      secret: () => config.slack.botToken,
    }),
    home: identity.known,
    groupIds: () => groupsNamedIn(config.policy),
    cacheMs: config.policy.timing.peopleCacheMs,
  });
  return {
    web,
    /** Why nothing is posted in a channel that another company shares. */
    refusal,
    identity,
    people,
    person: async (userId: string) => people.person(userId, identity.known().teamId),
  };
}
