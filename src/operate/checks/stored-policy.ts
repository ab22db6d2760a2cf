import { readStoredPolicy } from "../../audit/stored-policy.ts";
import type { PolicyText } from "../../config/changing-policy.ts";
import type { Config } from "../../config/config.ts";
import { withRedis } from "../../redis/redis.ts";
import { type InForce, claimOf, isInForce, policyName, versionProblem } from "../adopt-policy.ts";
import { type Finding, ill, note, well } from "../../messages/finding.ts";

/**
 * Compares the file with the policy in force. Empty when Redis can't be asked, which its own check
 * reports.
 */
export function judgeStoredPolicy(config: Config): Promise<readonly Finding[]> {
  const { policyFile: file } = config;
  const shown = { certificate: () => config.redisCertificate };
  return withRedis(config.redisUrl, shown, async (redis, key) => {
    const stored = await readStoredPolicy(redis, key);
    const textInForce = stored && file.parse(stored.text);
    return [storedFinding(file.current, { stored, textInForce }, file.shown)];
  }).catch(() => []);
}

/** Says what becomes of a process that starts with this file. */
export function storedFinding(own: PolicyText, current: InForce, shown: string): Finding {
  const { stored } = current;
  if (stored === undefined)
    return well("in force: none yet; the first process to start brings this one");
  const nameInForce = policyName(stored.rules, stored.version);
  const claim = claimOf(own, current);
  if (claim === "same") return well(`in force: version ${nameInForce}, which this file has`);
  if (claim === "replaces")
    return note(
      `in force: version ${nameInForce}; this file differs`,
      "The next process that starts with it, or rereads it, puts it in force.",
    );
  const why = versionProblem(own.policy, stored, shown) ?? `${shown} isn't the policy in force`;
  return isInForce(own, current)
    ? note(
        why,
        "Its rules are those in force, so a process works with it; put the same file there.",
      )
    : ill(
        why,
        "Put the file that is in force there, or raise its version: a process with this one changes nothing.",
      );
}
