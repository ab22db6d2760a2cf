import { randomBytes } from "node:crypto";
import { z } from "zod";
import { UserError } from "../errors.ts";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import { compareIds, isSealedBy, isStreamId, type Seal } from "./chain.ts";
import { type ErasedMarker, readMarker } from "./markers.ts";
import * as scripts from "./scripts.ts";
import { createTrail, type Trail } from "./trail.ts";

const leaseMs = 30_000;
const pageSize = 500;

const rewriteReply = z.array(z.string());

/**
 * Takes the content of these records away for good; their seals stay, so the chain still verifies, and a new record says
 * who did it and why. XDEL alone leaves the bytes in memory and in dumps, so the stream is written anew without them.
 * Done again with the same ids, it finishes what a crash left undone.
 *
 * Throws a UserError when a record isn't sealed yet, isn't what was sealed, or explains an erasure or a loss itself, and
 * when somebody else erases right now.
 */
export async function eraseRecords(options: {
  redis: RedisClient;
  key: Keys;
  ids: readonly string[];
  who: string;
  why: string;
}): Promise<{ erased: number }> {
  const { redis, key, who, why } = options;
  const trail = createTrail(redis, key);
  const rewriting = key("audit", "rewriting");
  const token = randomBytes(8).toString("hex");
  const taken = await redis.set(rewriting, token, "PX", leaseMs, "NX");
  if (taken === null) throw busy();
  try {
    const seals = await erasable(trail, options.ids);
    if (seals.length > 0) {
      const erased = seals.map(({ seq, id }) => ({ seq, id }));
      const marker: ErasedMarker = { what: "audit-erased", who, why, erased };
      const outcome = await defineScript(
        redis,
        "gatehouseAuditErase",
        scripts.erase,
      )(
        [trail.names.records, rewriting, ...seals.map(({ seq }) => trail.names.salts(seq))],
        [token, JSON.stringify(marker), ...seals.flatMap(({ seq, id }) => [id, seq])],
      );
      if (outcome !== "erased") throw busy();
    }
    await rewrite(trail, rewriting, token);
    return { erased: seals.length };
  } finally {
    const release = defineScript(redis, "gatehouseAuditRelease", scripts.release);
    await release([rewriting], [token]).catch(() => undefined);
  }
}

const busy = () =>
  new UserError("Somebody else is erasing audit records right now", "try again in a minute");

/** The seals of those that are still there. */
async function erasable(trail: Trail, ids: readonly string[]): Promise<Seal[]> {
  const found: Seal[] = [];
  for (const id of new Set(ids)) {
    if (!isStreamId(id)) throw new UserError(`${id} is not the id of an audit record`);
    const seal = await findSeal(trail, id);
    if (!seal) {
      throw new UserError(`Audit record ${id} is not sealed`, "check the id, or wait a second");
    }
    const [entry] = await trail.records({ after: before(id), last: id, most: 1 });
    if (!entry) continue;
    const salt = (await trail.salts([seal])).get(seal.seq);
    if (!isSealedBy(entry, seal, salt)) {
      throw new UserError(`Audit record ${id} is not what was sealed`, "run audit verify");
    }
    if (readMarker(entry.record)) {
      throw new UserError(`Audit record ${id} says what happened to the trail, so it must stay`);
    }
    found.push(seal);
  }
  return found;
}

/** Seals are in the order of their records, so the middle tells which half to look in. */
async function findSeal(trail: Trail, id: string): Promise<Seal | undefined> {
  let low = 1;
  let high = (await trail.head())?.seq ?? 0;
  while (low <= high) {
    const middle = Math.floor((low + high) / 2);
    const [seal] = await trail.seals(middle, 1);
    if (!seal || seal.seq > high) high = middle - 1;
    else {
      const order = compareIds(seal.id, id);
      if (order === 0) return seal;
      if (order < 0) low = seal.seq + 1;
      else high = middle - 1;
    }
  }
  return undefined;
}

/** The greatest id below this one. */
function before(id: string): string {
  const [ms = "0", count = "0"] = id.split("-");
  return Number(count) > 0 ? `${ms}-${Number(count) - 1}` : `${Number(ms) - 1}-999999999999999`;
}

/** In pages, so that nobody waits for Redis meanwhile; the last page and the exchange are one step. */
async function rewrite(trail: Trail, rewriting: string, token: string): Promise<void> {
  const run = defineScript(trail.redis, "gatehouseAuditRewrite", scripts.rewrite);
  const copy = trail.key("audit", "copy", token);
  let last = "";
  for (;;) {
    const keys = [trail.names.records, rewriting, copy];
    const [is, reached = ""] = rewriteReply.parse(
      await run(keys, [token, last, pageSize, leaseMs]),
    );
    if (is === "done") return;
    if (is !== "more") throw busy();
    last = reached;
  }
}
