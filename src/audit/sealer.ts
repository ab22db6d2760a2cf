import { randomBytes } from "node:crypto";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Keys, type RedisClient, defineScript } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import { openAnchors } from "./anchors.ts";
import { checkpointText } from "./checkpoint.ts";
import { type SigningKey, openSigningKey } from "./signing-key.ts";
import { type Seal, type TrailEntry, genesis, hashOf, saltedHash } from "./seal.ts";
import type { GapMarker } from "./markers.ts";
import { Trail } from "./trail.ts";

interface SealerOptions {
  redis: RedisClient;
  key: Keys;
  log: Log;
  /** The folder where this process keeps its anchors and the signing key. */
  dataDir: string;
  /** The approximate interval (ms). */
  everyMs?: number;
  /** How long sealing may fail before `onStuck` (ms). */
  stuckAfterMs?: number;
  /** How often a head that moves is anchored (ms). */
  anchorEveryMs?: number;
  /** Called once per incident: records can't be sealed, or sealed records have disappeared. */
  onStuck?: (why: string, cause: "trail-unsealed" | "records-lost") => void;
  /**
   * Called when this process's own disk fails while another process seals. This process should
   * leave before it becomes the one that is stuck.
   */
  onUnfit?: (why: string) => void;
}

const batch = 500;
const anchorEveryRecords = 100;
const signEveryRecords = 100;
const signEveryMs = 3600_000;

/** A failure of the anchors or the signing key, which only this process has. */
class DiskFailure extends Error {
  override readonly name = "DiskFailure";
}

function onDisk<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new DiskFailure(messageOf(error));
  }
}

/**
 * Seals the audit trail. Every process with a trail runs one, and whichever comes first seals.
 * `close` seals what is there and anchors the head.
 *
 * Each run compares the chain's end with this process's last anchor and with the highest number
 * that Redis ever gave, writes a difference into the trail, anchors the head on this disk, and
 * seals what came since. The disk comes first, so a process that can't store a head leaves sealing
 * to the others.
 */
export function startSealer(options: SealerOptions): { close(): Promise<void> } {
  const { redis, key, log, dataDir, everyMs = 500, stuckAfterMs = 30_000 } = options;
  const { anchorEveryMs = 60_000 } = options;
  const trail = new Trail(redis, key);
  const anchors = openAnchors(dataDir, key.namespace);
  const leaseMs = Math.max(1, Math.round(everyMs * 0.7));
  let signingKey: SigningKey | undefined;
  /**
   * True when the last anchor isn't in the chain and the trail says so. The next head then replaces
   * it.
   */
  let isAnchorLost = false;
  /** The number of the head as it was last read. */
  let seen = 0;
  let failing: { since: number; isTold: boolean } | undefined;
  /** The head's number when this disk began to fail. */
  let diskFailedAt: number | undefined;
  let isClosed = false;

  async function seal(): Promise<void> {
    let isMine = isClosed;
    for (;;) {
      const { head, lastSeq } = await trail.end();
      seen = head?.seq ?? 0;
      const reached = Math.max(lastSeq, anchors.last?.seq ?? 0);
      await compare(reached);
      await anchor(head);
      const entries = await trail.records({ after: head?.id, most: batch });
      if (entries.length === 0) return;
      // The lease only saves the other processes the hashing. The seals' own script ensures that no
      // two seal the same record.
      isMine ||= (await redis.set(key("audit", "sealer"), "held", "PX", leaseMs, "NX")) !== null;
      if (!isMine) return;
      const signer = (signingKey ??= onDisk(() => openSigningKey(dataDir)));
      const sealed = await sealBehind(trail, head, reached + 1, entries);
      if (sealed) await signDue(trail, signer, sealed);
      if (entries.length < batch && !isClosed) return; // The new head is anchored in the next run.
    }
  }

  /**
   * Checks that Redis hasn't come back older or emptied: every number that was given, and the
   * anchored seal, must still be there.
   */
  async function compare(reached: number): Promise<void> {
    const { last } = anchors;
    if (isAnchorLost) return;
    if (reached > seen) return report({ found: "cut", after: seen, next: reached + 1 });
    if (!last || (await trail.seal(last.seq))?.hash === last.hash) return;
    const cut = await trail.cut();
    const isArchived = cut && (last.seq < cut.seq || last.hash === cut.hash);
    if (isArchived && last.seq <= cut.seq) return;
    await report({ found: "replaced", after: last.seq - 1, next: last.seq });
  }

  /** Writes a loss into the trail once. Sealing continues after it. */
  async function report({ found: kind, after, next }: Omit<GapMarker, "what">): Promise<void> {
    isAnchorLost = true;
    const anchored = anchors.last;
    const record = { what: "audit-gap", found: kind, after, next, ...(anchored && { anchored }) };
    const name = `${kind} ${after} ${next} ${anchored?.hash ?? ""}`;
    if (!(await trail.appendOnce(name, record))) return;
    log.error("audit.gap", { after, next, found: kind });
    options.onStuck?.(
      `sealed audit records after number ${after} have disappeared or were replaced`,
      "records-lost",
    );
  }

  async function anchor(head: Seal | undefined): Promise<void> {
    const { last } = anchors;
    if (!head || (last && last.seq >= head.seq)) return;
    const at = await trail.now();
    const isDue =
      isClosed ||
      isAnchorLost ||
      !last ||
      head.seq - last.seq >= anchorEveryRecords ||
      at - last.at >= anchorEveryMs;
    if (!isDue) return;
    onDisk(() => anchors.add({ seq: head.seq, hash: head.hash, at }));
    isAnchorLost = false;
  }

  async function run(): Promise<void> {
    try {
      await seal();
      failing = diskFailedAt = undefined;
    } catch (error) {
      log.warn("audit.not-sealed", { error });
      fails(messageOf(error), error instanceof DiskFailure);
    }
  }

  function fails(why: string, isOfDisk: boolean): void {
    if (isOfDisk) {
      diskFailedAt ??= seen;
      // Another process seals.
      if (seen > diskFailedAt)
        return options.onUnfit?.(`the audit trail's head can't be kept on this disk: ${why}`);
    }
    failing ??= { since: performance.now(), isTold: false };
    const ms = performance.now() - failing.since;
    if (failing.isTold || ms <= stuckAfterMs) return;
    failing.isTold = true;
    log.error("audit.stuck", { why, ms });
    const since = Math.round(ms / 1000);
    options.onStuck?.(
      `the audit trail could not be sealed and anchored for ${since} s: ${why}`,
      "trail-unsealed",
    );
  }

  const repeated = repeatHere("seal", everyMs, run, log);
  return {
    async close() {
      isClosed = true;
      await repeated.close();
      await run();
    },
  };
}

/**
 * Appends seals to the head that they were computed from. The chain can't fork: of two sealers that
 * saw the same head, the second finds another one. A seal's stream ID is `seq-0`, so Redis itself
 * refuses a second seal with the same number, even after the stream was cut.
 *
 * KEYS seals, ...buckets of salts   ARGV hash of the head or '', seals as JSON, each with its salt
 * and its bucket's index in KEYS
 * → 1, or 0 when another process has sealed
 */
const sealLua = `
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local hash = ''
if last[1] then
  local fields = last[1][2]
  for i = 1, #fields, 2 do if fields[i] == 'hash' then hash = fields[i + 1] end end
end
if hash ~= ARGV[1] then return 0 end
for _, seal in ipairs(cjson.decode(ARGV[2])) do
  redis.call('XADD', KEYS[1], seal.seq .. '-0', 'id', seal.id, 'at', seal.at, 'payload', seal.payload, 'hash', seal.hash)
  redis.call('HSET', KEYS[seal.bucket], seal.seq, seal.salt)
end
return 1
`;

/**
 * Seals records after `head`, numbered from `firstSeq` on. Resolves with the new head, or undefined
 * when `head` is no longer the head.
 */
export async function sealBehind(
  { redis, names }: Trail,
  head: Seal | undefined,
  firstSeq: number,
  entries: readonly TrailEntry[],
): Promise<Seal | undefined> {
  const runSeal = defineScript(redis, "gatehouseAuditSeal", sealLua);
  let before = head?.hash ?? genesis;
  const seals = entries.map(({ id, at, record }, index) => {
    const salt = randomBytes(16).toString("hex");
    const body = { seq: firstSeq + index, id, at, payload: saltedHash(salt, record) };
    before = hashOf(before, body);
    return { ...body, hash: before, salt };
  });
  const buckets = [...new Set(seals.map(({ seq }) => names.salts(seq)))];
  const links = seals.map((seal) => ({
    ...seal,
    // Lua would write a large number with an exponent.
    seq: String(seal.seq),
    bucket: buckets.indexOf(names.salts(seal.seq)) + 2,
  }));
  const args = [head?.hash ?? "", JSON.stringify(links)];
  return (await runSeal([names.seals, ...buckets], args)) === 1 ? seals.at(-1) : undefined;
}

/** Signs the head when it has passed a hundredth record, or an hour after the last signature. */
async function signDue(trail: Trail, key: SigningKey, { seq, hash }: Seal): Promise<void> {
  const hundredth = seq - (seq % signEveryRecords);
  const [signed, at] = await Promise.all([trail.checkpoints(hundredth), trail.now()]);
  if (signed.some((checkpoint) => at - checkpoint.at < signEveryMs)) return;
  await signHead(trail, key, { seq, hash });
}

/** Signs this head. False when it, or a later one, was signed already. */
export async function signHead(
  trail: Trail,
  key: SigningKey,
  { seq, hash }: Pick<Seal, "seq" | "hash">,
): Promise<boolean> {
  const at = await trail.now();
  const signature = key.sign(checkpointText(trail.key.namespace, { seq, hash, at }));
  const fields = ["hash", hash, "at", String(at), "publicKey", key.publicKey];
  try {
    await trail.redis.xadd(trail.names.checkpoints, `${seq}-0`, ...fields, "signature", signature);
    return true;
  } catch (error) {
    if (messageOf(error).includes("equal or smaller")) return false;
    throw error;
  }
}
