import type { Fields, Log } from "../log/log.ts";
import { messageOf } from "../errors.ts";
import { redisTrouble } from "./trouble.ts";

/** Without a complaint for so long, Redis is asked whether the trouble is over. */
const quietMs = 5_000;

/**
 * Without Redis everything complains, many times a second. The first complaint becomes `redis.lost`; the others are
 * counted, and told in one line, `redis.back`, when none has come for five seconds and Redis `answers`: silence alone proves
 * nothing, as a process that only tries to connect complains every ten seconds. Only warnings and errors are counted, and only
 * those that say nothing else.
 */
export function withoutFloods(log: Log, answers: () => Promise<boolean>): Log & { close(): void } {
  let outage: { since: number; last: number; events: Map<string, number> } | undefined;
  let timer: NodeJS.Timeout | undefined;

  function complain(event: string, fields: Fields | undefined, why: string): void {
    const now = performance.now();
    if (!outage) {
      outage = { since: now, last: now, events: new Map() };
      log.warn("redis.lost", { ...fields, first: event, why });
      timer = setInterval(() => void look(), quietMs / 5).unref();
    }
    outage.last = now;
    outage.events.set(event, (outage.events.get(event) ?? 0) + 1);
  }

  const isQuiet = () => outage !== undefined && performance.now() - outage.last >= quietMs;

  async function look(): Promise<void> {
    const asked = outage;
    if (!asked || !isQuiet()) return;
    const isBack = await answers().catch(() => false);
    if (outage !== asked || !isQuiet()) return;
    if (isBack) tell("redis.back");
    else asked.last = performance.now();
  }

  function tell(event: "redis.back" | "redis.still-lost"): void {
    clearInterval(timer);
    if (!outage) return;
    const { since, last, events } = outage;
    outage = undefined;
    const complaints = [...events.values()].reduce((sum, count) => sum + count, 0);
    const seconds = Math.round((last - since) / 100) / 10;
    log.warn(event, { seconds, complaints, of: Object.fromEntries(events) });
  }

  const unless =
    (write: Log["warn"]): Log["warn"] =>
    (event, fields) => {
      const why = troubleIn(event, fields);
      if (why === undefined) write(event, fields);
      else complain(event, fields, why);
    };
  const close = () => tell("redis.still-lost");
  return { ...log, warn: unless(log.warn), error: unless(log.error), close };
}

/** What is wrong with Redis, if that is all that a line says. */
function troubleIn(event: string, fields: Fields | undefined): string | undefined {
  const said = fields?.["error"] ?? fields?.["why"];
  if (said === undefined) return undefined;
  const isConnection = event === "redis.error" || (event === "queue.error" && isBroken(said));
  return isConnection ? messageOf(said) : redisTrouble(said);
}

function isBroken(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return /^E(CONN|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH)/.test(String(error.code));
}
