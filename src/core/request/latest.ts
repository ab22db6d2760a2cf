import { type RedisClient, defineScript } from "../../redis/redis.ts";
import type { StoredRequest } from "./stored-request.ts";

/**
 * Reads the fields by which `move` tells whether a request is still as it was read.
 *
 * KEYS requests → for each its revision, its state, and the nonce of its claim, '' for one that is gone
 */
const marksScript = `
local marks = {}
for n, hash in ipairs(KEYS) do
  local is = redis.call('HMGET', hash, 'revision', 'attempt', 'state')
  local nonce = is[1] and redis.call('HGET', hash, 'claim:' .. is[2]) or ''
  marks[n] = is[1] and is[1] .. ' ' .. (is[3] or '') .. ' ' .. nonce or ''
end
return marks
`;

/** How many requests one script reads, so that it doesn't hold Redis up. */
const marksAtOnce = 200;
/**
 * How many requests are kept, which takes some 50 MB. Where more are open, the others are read each
 * time.
 */
const mostKept = 10_000;

/**
 * Reads open requests for callers that do so again and again, polls and the sweep. A request that
 * hasn't changed since this process read it costs neither a read nor a parse. `delivered`, which
 * says how Slack shows it, may be older, because the revision doesn't cover it.
 */
export function createLatest(
  redis: RedisClient,
  requestKey: (id: string) => string,
  getMany: (ids: readonly string[]) => Promise<StoredRequest[]>,
): (ids: readonly string[]) => Promise<StoredRequest[]> {
  const runMarks = defineScript(redis, "gatehouseMarks", marksScript);
  /** Requests in the order in which they were last asked for, the longest ago first. */
  const kept = new Map<string, StoredRequest>();

  function keep(request: StoredRequest): void {
    const { id } = request.record;
    kept.delete(id);
    if (!request.final) kept.set(id, request);
    const [oldest] = kept.keys();
    if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
  }

  return async (ids) => {
    const marks: string[] = [];
    for (let from = 0; from < ids.length; from += marksAtOnce) {
      const some = ids.slice(from, from + marksAtOnce);
      marks.push(...((await runMarks(some.map(requestKey), [])) as string[]));
    }
    const requests = new Map<string, StoredRequest>();
    for (const [at, id] of ids.entries()) {
      const before = kept.get(id);
      if (before && markOf(before) === marks[at]) requests.set(id, before);
    }
    const changed = ids.filter((id) => !requests.has(id));
    for (const id of changed) kept.delete(id);
    for (const request of await getMany(changed)) requests.set(request.record.id, request);
    for (const request of requests.values()) keep(request);
    return ids.flatMap((id) => requests.get(id) ?? []);
  };
}

/**
 * The state is part of the mark, because somebody may have changed it in Redis by hand, which the
 * gate must see.
 */
const markOf = ({ revision, state, nonce = "" }: StoredRequest) => `${revision} ${state} ${nonce}`;
