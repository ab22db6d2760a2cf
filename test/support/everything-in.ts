import type { Keys, RedisClient } from "../../src/redis/redis.ts";

/** All that Redis keeps under this namespace, by key: the texts of each entry. */
export async function everythingIn(
  redis: RedisClient,
  key: Keys,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = (await redis.keys(`${key.prefix}:*`)).toSorted();
  const texts = names.map(async (name): Promise<[string, string[]]> => {
    const kind = await redis.type(name);
    if (kind === "string") return [name, [(await redis.get(name)) ?? ""]];
    if (kind === "hash")
      return [
        name,
        Object.entries(await redis.hgetall(name))
          .toSorted(([a], [b]) => a.localeCompare(b))
          .flat(),
      ];
    if (kind === "list") return [name, await redis.lrange(name, 0, -1)];
    if (kind === "set") return [name, (await redis.smembers(name)).toSorted()];
    if (kind === "zset") return [name, await redis.zrange(name, 0, "-1", "WITHSCORES")];
    if (kind === "stream") return [name, (await redis.xrange(name, "-", "+")).flat(2)];
    return [name, kind === "none" ? [] : [`unknown: ${kind}`]];
  });
  return new Map(await Promise.all(texts));
}

/** The keys that hold this text, in their name or in a value. */
export const keysWith = (everything: Awaited<ReturnType<typeof everythingIn>>, text: string) =>
  [...everything]
    .filter(([name, texts]) => `${name} ${texts.join(" ")}`.includes(text))
    .map(([name]) => name);
