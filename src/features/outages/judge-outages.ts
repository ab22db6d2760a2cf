import { type Finding, ill, well } from "../../messages/finding.ts";
import { duration } from "../../messages/markdown.ts";
import { type DependencyProbe, partNames } from "../../monitor/dependency-probe.ts";
import type { OutageStore } from "./outages.ts";

/** Says what Redis does while it has this problem. */
const redisIsAway = (problem: string) =>
  /is down|answers slowly/.test(problem) ? "has been away" : "has taken no writes";

/** Finds what is unavailable now, or what was last. */
export async function judgeOutages(on: {
  outages: Pick<OutageStore, "state">;
  /** Redis time (ms). */
  now(): Promise<number>;
  watch: Pick<DependencyProbe, "redisAwayMs">;
  redisProblem(): Promise<string | undefined>;
}): Promise<Finding> {
  const awayMs = on.watch.redisAwayMs();
  const problem = await on.redisProblem();
  if (awayMs !== undefined && problem !== undefined) {
    const problemWords = `Redis ${redisIsAway(problem)} for ${duration(awayMs)}`;
    const since = Date.now() - awayMs;
    return { ...ill(problemWords, "Refused requests are reported when it is back."), since };
  }
  const [{ open, last }, now] = await Promise.all([on.outages.state(), on.now()]);
  const away = open.map(
    ({ part, since }) => `${partNames[part]} has been away for ${duration(now - since)}`,
  );
  if (away.length > 0) return ill(away.join("; "), "Each channel gets a recap afterwards.");
  if (last === undefined) return well("none");
  const [lasted, ago] = [last.until - last.since, now - last.until].map(duration);
  return well(`none now; ${partNames[last.part]} was away for ${lasted}, until ${ago} ago`);
}
