import { UserError } from "../errors.ts";
import type { RedisPlace } from "../redis/redis.ts";
import { readMarker } from "./markers.ts";
import { rewriteTrail } from "./rewrite.ts";
import { type Seal, isStreamId } from "./seal.ts";
import { Trail } from "./trail.ts";

/**
 * Permanently erases the contents of these records. Their seals stay, so the chain still verifies,
 * and a new record says who did it and why.
 *
 * Throws a UserError when a record isn't sealed yet, isn't what was sealed, or itself explains an
 * erasure or a loss, and when someone else is erasing.
 */
export async function eraseRecords({
  redis,
  key,
  ids,
  who,
  why,
}: RedisPlace & { ids: readonly string[]; who: string; why: string }) {
  const trail = new Trail(redis, key);
  const seals = new Map((await erasable(trail, ids)).map((seal) => [seal.id, seal]));
  if (seals.size > 0)
    await rewriteTrail(trail, {
      replace: (page) =>
        page
          .flatMap(({ id }) => seals.get(id) ?? [])
          .map(({ seq, id }) => ({ named: { seq, id } })),
      markers: (replaced) => [{ what: "audit-erased", who, why, erased: [...replaced] }],
    });
  return { erased: seals.size };
}

/** The seals of the records that still exist. Throws for a record that must not be erased. */
async function erasable(trail: Trail, ids: readonly string[]): Promise<Seal[]> {
  const seals: Seal[] = [];
  for (const id of new Set(ids)) {
    if (!isStreamId(id)) throw new UserError(`${id} is not the ID of an audit record`);
    const seal = await trail.sealOf(id);
    if (!seal) {
      throw new UserError(`Audit record ${id} is not sealed`, "check the ID, or wait a second");
    }
    const stored = await trail.find(id);
    if (!stored) continue;
    if (stored.standing !== "sealed") {
      throw new UserError(`Audit record ${id} is not what was sealed`, "run audit verify");
    }
    if (readMarker(stored.record)) {
      throw new UserError(`Audit record ${id} says what happened to the trail, so it must stay`);
    }
    seals.push(seal);
  }
  return seals;
}
