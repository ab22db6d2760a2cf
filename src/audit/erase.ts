import { randomBytes } from "node:crypto";
import { z } from "zod";
import { UserError } from "../errors.ts";
import { type Keys, defineScript, type RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import {
  idBefore,
  isSealedBy,
  isStreamId,
  type Seal,
  type ErasedMarker,
  readMarker,
} from "./chain.ts";
import * as scripts from "./scripts.ts";
import { createTrail, type Trail } from "./trail.ts";

const leaseMs = 30_000;
const pageSize = 500;

const rewriteReply = z.array(z.string());

/**
 * Permanently erases the contents of these records; their seals stay, so the chain still verifies, and a new record says
 * who did it and why. XDEL alone leaves the bytes in memory and in dumps, so the stream is rewritten without them.
 * A repeat with the same IDs completes what a crash interrupted.
 *
 * Throws a UserError when a record isn't sealed yet, isn't what was sealed, or explains an erasure or a loss itself, and
 * when someone else is erasing.
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
  const leases = createLeases(redis);
  const token = randomBytes(8).toString("hex");
  if (!(await leases.take(rewriting, token, leaseMs))) throw busy();
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
    await leases.release(rewriting, token).catch(() => undefined);
  }
}

const busy = () => new UserError("Someone else is erasing audit records", "try again in a minute");

/** The seals of those whose records still exist. */
async function erasable(trail: Trail, ids: readonly string[]): Promise<Seal[]> {
  const found: Seal[] = [];
  for (const id of new Set(ids)) {
    if (!isStreamId(id)) throw new UserError(`${id} is not the ID of an audit record`);
    const seal = await trail.sealOf(id);
    if (!seal) {
      throw new UserError(`Audit record ${id} is not sealed`, "check the ID, or wait a second");
    }
    const [entry] = await trail.records({ after: idBefore(id), last: id, most: 1 });
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

/** In pages, so that Redis isn't blocked; the last page and the swap are one step. */
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
