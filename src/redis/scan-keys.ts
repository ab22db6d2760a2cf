import type { Keys, RedisClient } from "./redis.ts";

/** The keys that one step of a scan looks at. */
const page = 500;

/** Each key of the installation once or more, some at a time, in no order. Keys that come meanwhile may be missing. */
export async function* scanKeys(
  redis: RedisClient,
  key: Pick<Keys, "prefix">,
): AsyncGenerator<readonly string[]> {
  let cursor = "0";
  do {
    const [next, names] = await redis.scan(cursor, "MATCH", `${key.prefix}:*`, "COUNT", page);
    if (names.length > 0) yield names;
    cursor = next;
  } while (cursor !== "0");
}
