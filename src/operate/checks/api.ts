import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { counted, duration, firstFew } from "../../messages/message.ts";
import { withRedis } from "../../redis/redis.ts";
import { createJournal } from "../../requests/journal/journal.ts";
import { placeFindings } from "./alert-places.ts";
import { type Finding, ill, note, well } from "../../messages/finding.ts";
import { judgePort, lookAtPort } from "./ports.ts";

const mostNamed = 5;

/** Undefined for a worker, which has none. */
export async function judgeApi(config: Config): Promise<readonly Finding[] | undefined> {
  const { role, api, host = "0.0.0.0", policy, sourceProblems } = config;
  if (role === "worker") return undefined;
  if (!api) return [offFinding(policy)];
  const found = lookAtPort(
    { port: api.port, host, path: "/" },
    ({ headers }) => headers["content-type"] === "application/problem+json",
  );
  const port = judgePort("DOOR_PORT", api.port, await found);
  const count = Object.keys(policy.sources).length;
  const secrets = count === 0 ? [] : secretFindings(sourceProblems, count);
  return [port, ...secrets, ...placeFindings(policy), ...(await callFindings(config))];
}

/** None where Redis can't be asked, which is a finding of its own. */
const callFindings = (config: Config): Promise<readonly Finding[]> =>
  withRedis(config.redisUrl, { certificate: () => config.redisCertificate }, async (redis, key) => {
    const { apiCalls, now } = createJournal(redis, key);
    return [well(callsInWords(config.policy, await apiCalls(), await now()))];
  }).catch(() => []);

export function secretFindings(problems: readonly string[], sources: number): readonly Finding[] {
  const mend = "Until then Gatehouse answers 401 to what this source sends.";
  if (problems.length > 0) return problems.map((problem) => ill(problem, mend));
  return [well(`secrets: there for ${counted(sources, "source")} of alerts`)];
}

export function offFinding({ sources, services }: Policy): Finding {
  const callers = [...Object.keys(sources), ...Object.keys(services)];
  if (callers.length === 0) return well("off");
  const what = `off here, and gatehouse.yml names ${firstFew(callers, mostNamed)}`;
  return note(what, "Set DOOR_PORT where they should come in.");
}

/** Who came in last, and when. `calls` is by `<route> <caller>`. */
export function callsInWords(
  { sources, services }: Policy,
  calls: ReadonlyMap<string, number>,
  now: number,
): string {
  const last = (what: "alert" | "call", name: string, caller: string) => {
    const times = [...calls].flatMap(([by, at]) => (by.endsWith(` ${caller}`) ? [at] : []));
    if (times.length === 0) return `no ${what} yet from ${name}`;
    return `last ${what} from ${name} ${duration(now - Math.max(...times))} ago`;
  };
  const all = [
    ...Object.keys(sources).map((name) => last("alert", name, `sources.${name}`)),
    ...Object.keys(services).map((name) => last("call", name, `services.${name}`)),
  ];
  return firstFew(all, 2 * mostNamed) || "open to no one in gatehouse.yml";
}
