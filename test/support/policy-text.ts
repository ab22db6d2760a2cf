import { readStoredPolicy } from "../../src/audit/stored-policy.ts";
import type { PolicyText } from "../../src/config/changing-policy.ts";
import { parsePolicy, policyVersion, servicesVersion } from "../../src/config/policy-file.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";
import { type InForce, adoptPolicy } from "../../src/operate/adopt-policy.ts";
import { terms } from "./commands.ts";

/** A text of gatehouse.yml as a process reads it. */
export function policyTextOf(text: string): PolicyText {
  const read = parsePolicy(text, "gatehouse.yml", terms);
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return { ...read, text, policyVersion: policyVersion(read.policy) };
}

/** As if that text were in force. */
export function inForce(text: string | undefined): InForce {
  if (text === undefined) return { stored: undefined, textInForce: undefined };
  const theirs = policyTextOf(text);
  const { policy, policyVersion: rules } = theirs;
  const { version } = policy;
  return {
    stored: { number: 1, rules, services: servicesVersion(policy), version, text },
    textInForce: theirs,
  };
}

/** Puts it in force, whatever was. */
export async function adoptText(
  redis: RedisClient,
  key: Keys,
  text: string,
  channels: readonly (string | undefined)[] = [],
) {
  const stored = await readStoredPolicy(redis, key);
  const before = { stored, textInForce: stored && policyTextOf(stored.text) };
  const adopted = await adoptPolicy(redis, key, policyTextOf(text), { before, channels });
  if (!adopted) throw new Error("another process was faster");
  return adopted;
}
