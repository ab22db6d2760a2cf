import { UserError } from "../errors.ts";
import { type RedisPlace, defineScript, redisTimeLua } from "../redis/redis.ts";
import type { SigningKey } from "./signing-key.ts";
import { type Cut, cutRecord, cutText } from "./cut.ts";
import type { Seal } from "./seal.ts";
import { sealPages } from "./walk.ts";
import { Trail } from "./trail.ts";

/** Requests are kept for 90 days, and what is told about them cites their records. */
const leastAgeMs = 90 * 86_400_000;

/**
 * Moves the beginning of the trail and records that, in one step.
 *
 * KEYS archived, records   ARGV the cut as JSON, the record
 */
const cutLua = `${redisTimeLua}
redis.call('SET', KEYS[1], ARGV[1])
redis.call('XADD', KEYS[2], '*', 'at', now, 'record', ARGV[2])
return 1
`;

/**
 * The last seal of a record from before this time (ms), up to which the trail may be cut. The head
 * always stays. Throws a UserError when nothing is that old, and when the time is too near.
 */
export async function lastSealBefore({ redis, key }: RedisPlace, before: number): Promise<Seal> {
  const trail = new Trail(redis, key);
  if ((await trail.now()) - before < leastAgeMs)
    throw new UserError(
      "The records of the last 90 days can't be archived, because requests still cite them",
      "choose an earlier --before",
    );
  const kept = (await trail.firstSealFrom(`${before}-0`)) ?? (await trail.head());
  const last = kept && (await trail.sealBefore(kept.seq));
  const cut = await trail.cut();
  if (last && last.seq > (cut?.seq ?? 0)) return last;
  throw new UserError("No sealed record is that old", "nothing was archived");
}

/**
 * Cuts off all records up to this seal, which an export must contain. From then on the trail begins
 * after it, with a signed marker that `verify` starts from, and a record says who did it and why.
 */
export async function cutTrail(
  { redis, key }: RedisPlace,
  {
    last: { seq, hash, id },
    signingKey,
    who,
    why,
  }: { last: Seal; signingKey: SigningKey; who: string; why: string },
): Promise<void> {
  const trail = new Trail(redis, key);
  const point = { seq, hash, id, at: await trail.now() };
  const { publicKey } = signingKey;
  const signature = signingKey.sign(cutText(key.namespace, point));
  const cut: Cut = { ...point, publicKey, signature };
  const record = { what: "audit-archived", who, why, to: seq, hash };
  const run = defineScript(redis, "gatehouseAuditCut", cutLua);
  await run([trail.names.cut, trail.names.records], [cutRecord.write(cut), JSON.stringify(record)]);
  await removeUpTo(trail, cut);
}

/**
 * Removes what the cut left behind, in pages, so that Redis isn't blocked. Nothing reads it any
 * more, so a process that dies here leaves only bytes, which the next archive removes.
 */
async function removeUpTo(trail: Trail, cut: Cut): Promise<void> {
  const { redis, names } = trail;
  for await (const page of sealPages(trail, 1)) {
    const seals = page.filter(({ seq }) => seq <= cut.seq);
    const last = seals.at(-1);
    if (!last) break;
    await redis.xtrim(names.records, "MINID", idAfter(last.id));
    for (const [bucket, some] of Map.groupBy(seals, ({ seq }) => names.salts(seq)))
      await redis.hdel(bucket, ...some.map(({ seq }) => String(seq)));
    await redis.hdel(names.redacted, ...seals.map(({ seq }) => String(seq)));
    // The seals go last: they lead a later run to the rest.
    await redis.xtrim(names.seals, "MINID", `${last.seq + 1}-0`);
  }
  await redis.xtrim(names.records, "MINID", idAfter(cut.id));
  await redis.xtrim(names.checkpoints, "MINID", `${cut.seq + 1}-0`);
}

function idAfter(id: string): string {
  const [ms, count = "0"] = id.split("-");
  return `${ms}-${Number(count) + 1}`;
}
