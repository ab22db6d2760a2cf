import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { callersIn } from "../../config/policy-section.ts";
import { counted, duration, firstFew } from "../../messages/markdown.ts";
import { withRedis } from "../../redis/redis.ts";
import { createJournal } from "../../core/request/journal.ts";
import { type Finding, ill, note, well } from "../../messages/finding.ts";
import { judgePort, lookAtPort } from "./ports.ts";

const mostNamed = 5;

/** Undefined for a worker, which has no API. */
export async function judgeApi(
  config: Config,
  judgePolicy: JudgePolicy,
): Promise<readonly Finding[] | undefined> {
  const { role, api, host = "::", policy } = config;
  if (role === "worker") return undefined;
  if (!api) return [offFinding(policy)];
  const portState = lookAtPort(
    { port: api.port, host, path: "/" },
    ({ headers }) => headers["content-type"] === "application/problem+json",
  );
  const port = judgePort("API_PORT", api.port, await portState);
  const secrets = secretFindings(policy, (variable) => config.callerSecret(variable).problem);
  return [port, ...secrets, ...judgePolicy(policy), ...(await callFindings(config))];
}

/** Finds problems in the sections of gatehouse.yml that belong to features. */
export type JudgePolicy = (policy: Policy) => readonly Finding[];

/** Checks whether the callers that authenticate with a secret would be admitted. */
export function secretFindings(
  policy: Policy,
  problemOf: (variable: string) => string | undefined,
): readonly Finding[] {
  const callers = callersIn(policy).filter(({ secret }) => secret !== undefined);
  const [first] = callers;
  if (!first) return [];
  const problems = callers.flatMap(({ secret = "" }) => problemOf(secret) ?? []);
  const mend = "Until then Gatehouse answers 401 to what this source sends.";
  if (problems.length > 0) return problems.map((problem) => ill(problem, mend));
  return [well(`secrets: there for ${counted(callers.length, "source")} of ${first.brings}s`)];
}

/** When callers last called. Empty when Redis can't be asked, which its own check reports. */
const callFindings = (config: Config): Promise<readonly Finding[]> =>
  withRedis(config.redisUrl, { certificate: () => config.redisCertificate }, async (redis, key) => {
    const { apiCalls, now } = createJournal(redis, key);
    return [well(callsInWords(config.policy, await apiCalls(), await now()))];
  }).catch(() => []);

export function offFinding(policy: Policy): Finding {
  const callers = [...callersIn(policy).map(({ name }) => name), ...Object.keys(policy.services)];
  if (callers.length === 0) return well("off");
  const problem = `off here, and gatehouse.yml names ${firstFew(callers, mostNamed)}`;
  return note(problem, "Set API_PORT where they should come in.");
}

/** Says who called last, and when. The keys of `calls` are `<route> <caller>`. */
export function callsInWords(
  policy: Policy,
  calls: ReadonlyMap<string, number>,
  now: number,
): string {
  const last = (noun: string, name: string, caller: string) => {
    const times = [...calls].flatMap(([routeAndCaller, at]) =>
      routeAndCaller.endsWith(` ${caller}`) ? [at] : [],
    );
    if (times.length === 0) return `no ${noun} yet from ${name}`;
    return `last ${noun} from ${name} ${duration(now - Math.max(...times))} ago`;
  };
  const all = [
    ...callersIn(policy).map(({ brings, name, caller }) => last(brings, name, caller)),
    ...Object.keys(policy.services).map((name) => last("call", name, `services.${name}`)),
  ];
  return firstFew(all, 2 * mostNamed) || "open to no one in gatehouse.yml";
}
