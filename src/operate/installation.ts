import { createHmac } from "node:crypto";
import * as z from "zod";
import { ConfigError } from "../config/config-error.ts";
import { defineRecord } from "../redis/define-record.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { BotIdentity } from "../slack/people/identity.ts";

const ownerShape = z.object({
  teamId: z.string(),
  team: z.string(),
  botUserId: z.string(),
  appId: z.string().optional(),
  /** An HMAC with the bot token as its key, so that the token can be recognized without Slack. */
  token: z.string(),
});
type Owner = z.infer<typeof ownerShape>;

export const ownerRecord = defineRecord({ name: "installation", schema: ownerShape });

/** The Slack app whose data these keys hold. */
const installationKey = (key: Keys) => key("installation");

/**
 * Undefined before the first start, and after the key was deleted for another app. Throws a
 * ConfigError for an owner that can't be read, because it may be another app.
 */
export async function readOwner(redis: RedisClient, key: Keys): Promise<Owner | undefined> {
  const held = await redis.get(installationKey(key));
  return held === null ? undefined : parseOwner(held, key);
}

function parseOwner(held: string, key: Keys): Owner {
  const owner = ownerRecord.parse(held, installationKey(key));
  if (owner) return owner;
  throw new ConfigError([
    `REDIS_NAMESPACE: ${key.prefix} in this Redis is used by a Slack app that can't be read: ${ownerHint(key)}`,
  ]);
}

export const isTokenOf = (owner: Owner, key: Keys, botToken: string): boolean =>
  owner.token === tokenMark(key, botToken);

export const describeOwner = ({ appId, botUserId, team, teamId }: Omit<Owner, "token">): string =>
  `${appId ?? `with the bot ${botUserId}`} of ${team === "" ? teamId : team}`;

/** The way out for whoever runs two installations, or replaces an app. */
export const ownerHint = (key: Keys): string =>
  `set REDIS_NAMESPACE to a name that no other installation has. If this app replaces that one, stop its processes and delete the key ${installationKey(key)}`;

/**
 * Takes these keys for the Slack app of this process, so that two installations on one Redis never
 * run each other's requests. Resolves once work may begin; `confirmed` resolves with the app's
 * identity once Slack has named it, and rejects with a ConfigError when the keys are another app's.
 *
 * A token that is known needs no answer from Slack, so a worker starts while Slack is down. With
 * another token, the app may be another one, and nothing begins before Slack has named it.
 */
export async function takeInstallation(
  redis: RedisClient,
  key: Keys,
  { botToken, identity }: { botToken: () => string; identity: Promise<BotIdentity> },
): Promise<{ confirmed: Promise<BotIdentity> }> {
  const confirmed = identity.then(async (bot) => {
    await confirmOwner(redis, key, bot, botToken());
    return bot;
  });
  confirmed.catch(() => undefined); // Whoever needs it awaits it and gets the error.
  const owner = await readOwner(redis, key);
  if (owner && !isTokenOf(owner, key, botToken())) await confirmed;
  return { confirmed };
}

async function confirmOwner(
  redis: RedisClient,
  key: Keys,
  { teamId, teamName: team = "", botUserId, appId }: BotIdentity,
  botToken: string,
): Promise<void> {
  const own: Owner = {
    teamId,
    team,
    botUserId,
    ...(appId === undefined ? {} : { appId }),
    token: tokenMark(key, botToken),
  };
  const name = installationKey(key);
  const text = ownerRecord.write(own);
  const held = await redis.set(name, text, "NX", "GET");
  if (held === null || held === text) return;
  const owner = parseOwner(held, key);
  if (!isSameApp(owner, own))
    throw new ConfigError([
      `REDIS_NAMESPACE: ${key.prefix} in this Redis is used by the Slack app ${describeOwner(owner)}, and this is the app ${describeOwner(own)}: ${ownerHint(key)}`,
    ]);
  // The ID that another process learned stays known.
  await redis.set(name, ownerRecord.write({ ...owner, ...own }));
}

/** Slack doesn't tell every process the app's ID. An app that is installed again keeps its bot. */
function isSameApp(owner: Owner, own: Owner): boolean {
  if (owner.teamId !== own.teamId) return false;
  if (owner.appId !== undefined && own.appId !== undefined) return owner.appId === own.appId;
  return owner.botUserId === own.botUserId;
}

function tokenMark(key: Keys, botToken: string): string {
  const text = `gatehouse installation ${key.namespace}`;
  return createHmac("sha256", botToken).update(text).digest("base64url");
}
