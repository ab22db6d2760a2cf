import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Keys, RedisClient } from "../redis.ts";
import { startRounds } from "../rounds.ts";
import { type Anchor, openAnchors } from "./anchors.ts";
import { compareIds, type Seal } from "./chain.ts";
import { openSigningKey, type SigningKey } from "./checkpoint.ts";
import { findGap } from "./gap.ts";
import { createSealing } from "./seal.ts";
import { signDue } from "./sign-due.ts";
import { createTrail } from "./trail.ts";

/** Seals the audit trail, one process at a time; the others stand by and take over when it dies. */
export interface Sealer {
  /** The end of the chain as this process last saw it. */
  head(): Anchor | undefined;
  /** Resolves when all that stands in the trail now is sealed, by whichever process. */
  idle(): Promise<void>;
  /** Seals what is there, writes down the head and gives the lease back. */
  close(): Promise<void>;
}

export interface SealerOptions {
  redis: RedisClient;
  key: Keys;
  log: Log;
  /** Where this process keeps its anchors and the signing key. */
  dataDir: string;
  /** About this often (ms); default 500. */
  everyMs?: number;
  /** How long after a sealer's last sign of life another one takes over (ms); default six rounds, at least 2 s. */
  leaseMs?: number;
  /** How long records may wait before somebody is told (ms); default 30 s. */
  stuckAfterMs?: number;
  /** How often the head is written to this process's disk while it moves (ms); default a minute. */
  anchorEveryMs?: number;
  /** At the beginning of trouble, once: records wait too long to be sealed, or sealed records have disappeared. */
  onStuck?: (why: string) => void;
}

const batch = 500;
const anchorEveryRecords = 100;

export function startSealer(options: SealerOptions): Sealer {
  const { redis, key, log, dataDir, everyMs = 500 } = options;
  const { leaseMs = Math.max(2000, 6 * everyMs), stuckAfterMs = 30_000 } = options;
  const { anchorEveryMs = 60_000 } = options;
  const trail = createTrail(redis, key);
  const sealing = createSealing(trail, randomBytes(8).toString("hex"), leaseMs);
  const anchors = openAnchors(dataDir, key.namespace);
  let signingKey: SigningKey | undefined;
  let seen: { head: Seal | undefined; now: number } | undefined;
  let floor = 0;
  let mustCompare = true;
  let failingSince: number | undefined;
  let isStuck = false;
  let isClosed = false;

  /** → for how long records have waited for another process that should have sealed them (ms). */
  async function round(): Promise<number> {
    let lagMs = 0;
    let isCompared = false;
    for (let isMore = true; isMore;) {
      if (mustCompare && !isCompared) {
        await compare();
        isCompared = true;
      }
      const step = await sealing.step(floor, batch);
      if (step.is === "lost") return 0;
      if (step.is === "cut") {
        floor = Math.max(floor, step.given);
        await report(await findGap(trail, { last: anchors.last, given: step.given }));
        continue;
      }
      seen = { head: step.head, now: step.now };
      if ((anchors.last?.seq ?? 0) > (step.head?.seq ?? 0)) mustCompare = true;
      if (step.is === "busy") lagMs = step.lagMs;
      if (step.is === "sealed") {
        signingKey ??= openSigningKey(dataDir);
        await signDue(trail, signingKey, step.head, step.now);
      }
      isMore = (step.is === "sealed" && step.isMore && !isClosed) || (mustCompare && !isCompared);
    }
    anchorSometimes();
    return lagMs;
  }

  /** Redis may have come back older than it was, or as another one: what this process anchored must still be there. */
  async function compare(): Promise<void> {
    const gap = await findGap(trail, { last: anchors.last });
    if (gap?.found === "cut") floor = Math.max(floor, gap.next - 1);
    await report(gap);
    mustCompare = false;
  }

  async function report(gap: Awaited<ReturnType<typeof findGap>>): Promise<void> {
    if (!gap?.isNew) return;
    log.error("audit.gap", { after: gap.after, next: gap.next, found: gap.found });
    options.onStuck?.(
      `sealed audit records after number ${gap.after} have disappeared or were replaced`,
    );
  }

  function tellWhenStuck(ms: number, why: string): void {
    const wasStuck = isStuck;
    // a failing round that isn't long enough yet doesn't end a trouble that was told
    isStuck = ms > stuckAfterMs || (wasStuck && ms > 0);
    if (!isStuck || wasStuck) return;
    log.error("audit.stuck", { why, ms });
    const since = Math.round(ms / 1000);
    options.onStuck?.(`the audit trail could not be sealed and anchored for ${since} s: ${why}`);
  }

  function anchorSometimes(isLast = false): void {
    if (!seen?.head) return;
    const { head, now } = seen;
    const { last } = anchors;
    if (last && last.seq >= head.seq) return;
    const isDue =
      !last || head.seq - last.seq >= anchorEveryRecords || now - last.at >= anchorEveryMs;
    if (isDue || isLast) anchors.add({ seq: head.seq, hash: head.hash, at: now });
  }

  async function run(): Promise<void> {
    try {
      tellWhenStuck(await round(), "the process that should do it doesn't");
      failingSince = undefined;
    } catch (error) {
      mustCompare = true;
      failingSince ??= performance.now();
      log.warn("audit.not-sealed", { error });
      tellWhenStuck(performance.now() - failingSince, messageOf(error));
    }
  }

  const onReady = () => {
    mustCompare = true;
  };
  redis.on("ready", onReady);
  const rounds = startRounds("seal", everyMs, run, log);
  return {
    head: () => seen?.head && { seq: seen.head.seq, hash: seen.head.hash, at: seen.now },

    async idle() {
      const [newest] = await trail.recordsBefore(undefined, 1);
      for (;;) {
        await rounds.now();
        if (!newest || (seen?.head && compareIds(seen.head.id, newest.id) >= 0)) return;
        if (isClosed) throw new Error("the sealer was closed before all was sealed");
        await sleep(everyMs);
      }
    },

    async close() {
      isClosed = true;
      redis.off("ready", onReady);
      await rounds.close();
      await run();
      try {
        anchorSometimes(true);
      } catch (error) {
        log.warn("audit.not-anchored", { error });
      }
      await sealing.release().catch(() => undefined);
    },
  };
}
