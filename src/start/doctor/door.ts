import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { codeOf } from "../../errors.ts";
import { counted, duration, firstFew } from "../../messages/message.ts";
import { withRedis } from "../../redis/redis.ts";
import { createJournal } from "../../requests/journal/journal.ts";
import { type Finding, ill, note, well } from "./finding.ts";

const withinMs = 2_000;
const mostNamed = 5;

/** What is on the door's port of this machine. */
async function lookAtPort(port: number): Promise<"nothing" | "door" | "other"> {
  const request = get({ host: "127.0.0.1", port, signal: AbortSignal.timeout(withinMs) });
  try {
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    answer.destroy();
    return answer.headers["content-type"] === "application/problem+json" ? "door" : "other";
  } catch (error) {
    return codeOf(error) === "ECONNREFUSED" ? "nothing" : "other";
  }
}

/** Undefined for a worker, which has none. */
export async function judgeDoor(config: Config): Promise<readonly Finding[] | undefined> {
  const { role, door, policy, sourceProblems } = config;
  if (role === "worker") return undefined;
  if (!door) return [offFinding(policy)];
  const found = door.port === 0 ? "nothing" : await lookAtPort(door.port);
  const port =
    found === "other"
      ? ill(
          `port ${door.port}: another program has it`,
          "Stop it, or set DOOR_PORT to another port.",
        )
      : well(`port ${door.port}: ${found === "door" ? "Gatehouse answers" : "free"}`);
  const count = Object.keys(policy.sources).length;
  const secrets = count === 0 ? [] : secretFindings(sourceProblems, count);
  return [port, ...secrets, ...(await callFindings(config))];
}

/** None where Redis can't be asked, which is a finding of its own. */
const callFindings = (config: Config): Promise<readonly Finding[]> =>
  withRedis(config.redisUrl, { certificate: () => config.redisCertificate }, async (redis, key) => {
    const { doorCalls, now } = createJournal(redis, key);
    return [well(callsInWords(config.policy, await doorCalls(), await now()))];
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
