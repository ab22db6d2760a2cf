import { scanKeys } from "../redis/scan-keys.ts";
import { defineScript, type Keys, type RedisClient } from "../redis/redis.ts";

type Redact = (text: string) => string;
type Script = ReturnType<typeof defineScript>;

const page = 500;
/** A key that changes all the time is left to the next pass. */
const mostTries = 5;

/**
 * Replaces one entry of a key, unless it changed since it was read. A hash with a revision gets a
 * new one, so that a process that read it before writes nothing back.
 *
 * KEYS key   ARGV type, where, the text there, next where, next text
 * → 1 when it was replaced
 */
const replaceLua = `
local key, kind, at, text, nextAt, nextText = KEYS[1], unpack(ARGV)
if kind == 'string' then
  if redis.call('GET', key) ~= text then return 0 end
  redis.call('SET', key, nextText, 'KEEPTTL')
elseif kind == 'hash' then
  if redis.call('HGET', key, at) ~= text then return 0 end
  redis.call('HSET', key, nextAt, nextText)
  if at ~= nextAt then redis.call('HDEL', key, at) end
  if redis.call('HEXISTS', key, 'revision') == 1 then redis.call('HINCRBY', key, 'revision', 1) end
elseif kind == 'list' then
  if redis.call('LINDEX', key, at) ~= text then return 0 end
  redis.call('LSET', key, at, nextText)
elseif kind == 'set' then
  if redis.call('SREM', key, text) == 0 then return 0 end
  redis.call('SADD', key, nextText)
elseif kind == 'zset' then
  local score = redis.call('ZSCORE', key, text)
  if not score then return 0 end
  redis.call('ZREM', key, text)
  redis.call('ZADD', key, score, nextText)
elseif kind == 'stream' then
  return redis.call('XDEL', key, at)
end
return 1
`;

/**
 * Renames a key. What stands under the new name already stays, and a sorted set joins it.
 *
 * KEYS key, next key
 */
const renameLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('RENAMENX', KEYS[1], KEYS[2]) == 1 then return 1 end
if redis.call('TYPE', KEYS[1]).ok == 'zset' then redis.call('ZUNIONSTORE', KEYS[2], 2, KEYS[2], KEYS[1], 'AGGREGATE', 'MAX') end
redis.call('DEL', KEYS[1])
return 1
`;

interface StoredText {
  /** The field of a hash, the index in a list, or the ID in a stream. */
  at: string;
  text: string;
}

/** The texts of all keys of this installation, to find in them and to replace in them. */
export function openStoredTexts(redis: RedisClient, key: Keys) {
  const replace = defineScript(redis, "gatehouseReplaceText", replaceLua);
  const rename = defineScript(redis, "gatehouseRenameKey", renameLua);

  /** Each key once, in no order. Keys that come meanwhile may be missing. */
  async function names(): Promise<ReadonlySet<string>> {
    const keyNames = new Set<string>();
    for await (const some of scanKeys(redis, key)) for (const name of some) keyNames.add(name);
    return keyNames;
  }

  async function* textsIn(name: string, kind: string): AsyncGenerator<StoredText> {
    if (kind === "string") {
      const text = await redis.get(name);
      if (text !== null) yield { at: "", text };
    } else if (kind === "list") {
      const all = await redis.lrange(name, 0, -1);
      for (const [index, text] of all.entries()) yield { at: String(index), text };
    } else if (kind === "stream") {
      for (let after = "-"; ;) {
        const rows = await redis.xrange(name, after, "+", "COUNT", page);
        for (const [id, fields] of rows) yield { at: id, text: fields.join(" ") };
        if (rows.length < page) return;
        after = `(${rows.at(-1)?.[0]}`;
      }
    } else {
      let cursor = "0";
      do {
        const [next, some] = await scanPart(name, kind, cursor);
        yield* some;
        cursor = next;
      } while (cursor !== "0");
    }
  }

  async function scanPart(
    name: string,
    kind: string,
    cursor: string,
  ): Promise<[string, StoredText[]]> {
    if (kind === "set") {
      const [next, members] = await redis.sscan(name, cursor, "COUNT", page);
      return [next, members.map((text) => ({ at: "", text }))];
    }
    const [next, flat] =
      kind === "hash"
        ? await redis.hscan(name, cursor, "COUNT", page)
        : await redis.zscan(name, cursor, "COUNT", page);
    const pairs = Array.from({ length: flat.length / 2 }, (_, index) => {
      const [first = "", second = ""] = flat.slice(2 * index, 2 * index + 2);
      return kind === "hash" ? { at: first, text: second } : { at: "", text: first };
    });
    return [next, pairs];
  }

  const isNamed = ({ at, text }: StoredText, redact: Redact) =>
    redact(at) !== at || redact(text) !== text;

  async function isNamedIn(name: string, redact: Redact): Promise<boolean> {
    if (redact(name) !== name) return true;
    for await (const storedText of textsIn(name, await redis.type(name)))
      if (isNamed(storedText, redact)) return true;
    return false;
  }

  /** Replaces all that is named in this key. An entry of a stream is deleted instead. */
  async function redactKey(name: string, redact: Redact): Promise<void> {
    const kind = await redis.type(name);
    for (let tries = 0; tries < mostTries; tries += 1) {
      let isDone = true;
      for await (const storedText of textsIn(name, kind)) {
        if (!isNamed(storedText, redact)) continue;
        const next = [redact(storedText.at), redact(storedText.text)];
        const args = [kind, storedText.at, storedText.text, ...next];
        isDone = (await call(replace, [name], args)) && isDone;
      }
      if (isDone) break;
    }
    if (redact(name) !== name) await call(rename, [name, redact(name)], []);
  }

  return { names, isNamedIn, redactKey };
}

const call = async (script: Script, keys: readonly string[], args: readonly string[]) =>
  (await script(keys, args)) === 1;
