import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Keys, defineScript, type RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import { startRounds } from "../redis/rounds.ts";
import { compareIds, type Entry, genesis, hashOf, payloadOf, type Seal } from "./chain.ts";
import { type Anchor, openAnchors, openSigningKey, type SigningKey } from "./anchors.ts";
import { findGap } from "./find-gap.ts";
import * as scripts from "./scripts.ts";
import { type Signed, signDue } from "./sign-due.ts";
import { createTrail, parseEntry, parseSeal, type Trail } from "./trail.ts";

/** Seals the audit trail, one process at a time; the others stand by and take over when it dies. */
interface Sealer {
  /** The end of the chain as this process last saw it. */
  head(): Anchor | undefined;
  /** Resolves when every record now in the trail is sealed, by any process. */
  idle(): Promise<void>;
  /** Seals what is there, anchors the head, and releases the lease. */
  close(): Promise<void>;
}

interface SealerOptions {
  redis: RedisClient;
  key: Keys;
  log: Log;
  /** Where this process keeps its anchors and the signing key. */
  dataDir: string;
  /** About this often (ms); default 500. */
  everyMs?: number;
  /** Lease after a sealer's last step (ms); default six rounds, at least 2 s. */
  leaseMs?: number;
  /** How long records may wait before `onStuck` (ms); default 30 s. */
  stuckAfterMs?: number;
  /** How often a moving head is anchored (ms); default a minute. */
  anchorEveryMs?: number;
  /** Once per incident: records wait too long, or sealed records have disappeared. */
  onStuck?: (why: string, cause: "trail-unsealed" | "records-lost") => void;
  /** This process's own disk fails while another process seals: it should leave before it is the one that is stuck. */
  onUnfit?: (why: string) => void;
}

/** The anchors or the signing key: what this process alone has. */
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

const batch = 500;
/** Rounds that only read what is new, between two that look at everything. */
const glances = 9;
const anchorEveryRecords = 100;

export function startSealer(options: SealerOptions): Sealer {
  const { redis, key, log, dataDir, everyMs = 500 } = options;
  const { leaseMs = Math.max(2000, 6 * everyMs), stuckAfterMs = 30_000 } = options;
  const { anchorEveryMs = 60_000 } = options;
  const trail = createTrail(redis, key);
  const token = randomBytes(8).toString("hex");
  const sealing = createSealing(trail, token, leaseMs);
  const anchors = openAnchors(dataDir, key.namespace);
  let signingKey: SigningKey | undefined;
  let signed: Signed | undefined;
  let seen: { head: Seal | undefined; now: number } | undefined;
  let floor = 0;
  let mustCompare = true;
  /** After a gap: the anchor that is gone would count as replaced at the next comparison. */
  let mustAnchor = false;
  /** Where the chain ended when all was sealed, and whether this process was to seal. */
  let settled: { head: Seal | undefined; isMine: boolean } | undefined;
  let glanced = glances;
  let failingSince: number | undefined;
  let isStuck = false;
  let diskFailure: string | undefined;
  let isClosed = false;

  /**
   * What was appended since all was sealed: one command, which hardly ever finds anything. Undefined when everything is to be
   * looked at: someone may cut seals.
   */
  async function glance(): Promise<Found | undefined> {
    if (mustCompare || isClosed || !settled || ++glanced > glances) return undefined;
    const { head, isMine } = settled;
    const range = { ...(head ? { after: head.id } : {}), most: isMine ? batch : 1 };
    return { head, isMine, entries: await trail.records(range) };
  }

  /** → how long records have waited for another process to seal them (ms). */
  async function round(): Promise<number> {
    let found = await glance();
    if (found?.entries.length === 0) {
      anchorSometimes();
      return 0;
    }
    if (!found?.isMine) found = undefined;
    glanced = found ? glanced : 0;
    settled = undefined;
    let lagMs = 0;
    let isCompared = false;
    for (let isMore = true; isMore;) {
      if (mustCompare && !isCompared) {
        await compare();
        isCompared = true;
      }
      const step = await (found ? sealing.seal(floor, batch, found) : sealing.step(floor, batch));
      found = undefined;
      if (step.is === "lost") return 0;
      if (step.is === "cut") {
        floor = Math.max(floor, step.given);
        report(await findGap(trail, { last: anchors.last, given: step.given }));
        continue;
      }
      seen = { head: step.head, now: step.now };
      if ((anchors.last?.seq ?? 0) > (step.head?.seq ?? 0)) mustCompare = true;
      if (step.is === "busy") lagMs = step.lagMs;
      if (step.is === "sealed") {
        signingKey ??= onDisk(() => openSigningKey(dataDir));
        signed = await signDue(trail, signingKey, step.head, step.now, signed);
      }
      const waits = step.is === "sealed" ? step.isMore : step.is === "busy" && step.waits;
      settled = waits ? undefined : { head: step.head, isMine: step.is !== "busy" };
      isMore = (step.is === "sealed" && step.isMore && !isClosed) || (mustCompare && !isCompared);
    }
    anchorSometimes();
    return lagMs;
  }

  /** Redis may have come back older or emptied: what this process anchored must still be there. */
  async function compare(): Promise<void> {
    const gap = await findGap(trail, { last: anchors.last });
    if (gap?.found === "cut") floor = Math.max(floor, gap.next - 1);
    report(gap);
    mustCompare = false;
    signed = undefined;
  }

  function report(gap: Awaited<ReturnType<typeof findGap>>): void {
    mustAnchor ||= gap !== undefined;
    if (!gap?.isNew) return;
    log.error("audit.gap", { after: gap.after, next: gap.next, found: gap.found });
    options.onStuck?.(
      `sealed audit records after number ${gap.after} have disappeared or were replaced`,
      "records-lost",
    );
  }

  function tellWhenStuck(ms: number, why: string): void {
    const wasStuck = isStuck;
    // a failing round that isn't long enough yet doesn't end a trouble that was told
    isStuck = ms > stuckAfterMs || (wasStuck && ms > 0);
    if (!isStuck || wasStuck) return;
    log.error("audit.stuck", { why, ms });
    const since = Math.round(ms / 1000);
    options.onStuck?.(
      `the audit trail could not be sealed and anchored for ${since} s: ${why}`,
      "trail-unsealed",
    );
  }

  function anchorSometimes(isLast = false): void {
    if (!seen?.head) return;
    const { head, now } = seen;
    const { last } = anchors;
    if (last && last.seq >= head.seq) return;
    const isDue =
      mustAnchor ||
      !last ||
      head.seq - last.seq >= anchorEveryRecords ||
      now - last.at >= anchorEveryMs;
    if (!isDue && !isLast) return;
    onDisk(() => anchors.add({ seq: head.seq, hash: head.hash, at: now }));
    mustAnchor = false;
  }

  async function run(): Promise<void> {
    try {
      if (diskFailure !== undefined && (await isSealedByAnother()))
        return options.onUnfit?.(
          `the audit trail's head can't be kept on this disk: ${diskFailure}`,
        );
      tellWhenStuck(await round(), "no process is sealing it");
      failingSince = diskFailure = undefined;
    } catch (error) {
      if (error instanceof DiskFailure) {
        diskFailure = error.message;
        await sealing.release().catch(() => undefined); // for whoever can
      }
      mustCompare = true;
      failingSince ??= performance.now();
      log.warn("audit.not-sealed", { error });
      tellWhenStuck(performance.now() - failingSince, messageOf(error));
    }
  }

  async function isSealedByAnother(): Promise<boolean> {
    const holder = await redis.get(trail.names.lease);
    return holder !== null && holder !== token;
  }

  const onReady = () => (mustCompare = true);
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

/** What is to be sealed next, and the chain's end that it follows. */
interface Found {
  head: Seal | undefined;
  isMine: boolean;
  entries: readonly Entry[];
}

type SealStep =
  | { is: "sealed"; head: Seal; count: number; isMore: boolean; now: number }
  | { is: "idle"; head: Seal | undefined; now: number }
  /** Another process seals. `lagMs`: how long the oldest unsealed record has waited. */
  | { is: "busy"; head: Seal | undefined; waits: boolean; lagMs: number; now: number }
  /** Someone sealed in between: the next step begins at the new head. */
  | { is: "lost" }
  /** Seals are missing at the end: numbers up to this one were given before. */
  | { is: "cut"; head: Seal | undefined; given: number };

const row = z.tuple([z.string(), z.array(z.string())]);
const beginReply = z.tuple([
  z.enum(["mine", "busy"]),
  z.number(),
  z.union([row, z.tuple([])]),
  z.array(row),
]);
const sealReply = z.tuple([z.enum(["sealed", "lost", "cut"]), z.number()]);

/** `token` names this sealer in the lease, which expires `leaseMs` after its last step. */
export function createSealing(trail: Trail, token: string, leaseMs: number) {
  const { names, redis } = trail;
  const runBegin = defineScript(redis, "gatehouseAuditBegin", scripts.begin);
  const leases = createLeases(redis);
  const runSeal = defineScript(redis, "gatehouseAuditSeal", scripts.seal);

  /** Takes the lease, reads at most `most` records, and seals them. The first gets a number above `floor`, which is 0 unless the chain was cut. */
  async function step(floor: number, most: number): Promise<SealStep> {
    const [whose, now, last, rows] = beginReply.parse(
      await runBegin([names.lease, names.seals, names.records], [token, leaseMs, most]),
    );
    const head = last.length === 0 ? undefined : parseSeal(last);
    const entries = rows.map(parseEntry);
    const [oldest] = entries;
    const lagMs = oldest ? Math.max(0, now - Number(oldest.at)) : 0;
    if (whose === "busy") return { is: "busy", head, waits: oldest !== undefined, lagMs, now };
    return oldest ? seal(floor, most, { head, entries }) : { is: "idle", head, now };
  }

  /** Seals what was read before: when the chain has another end by now, or another process the lease, it is lost. */
  async function seal(
    floor: number,
    most: number,
    { head, entries }: Pick<Found, "head" | "entries">,
  ): Promise<SealStep> {
    const links = link(head, Math.max(head?.seq ?? 0, floor) + 1, entries);
    const [outcome, now] = await append(head, links);
    if (outcome === "cut") return { is: "cut", head, given: (await trail.lastGiven()).seq };
    const newHead = links.at(-1)?.seal;
    if (outcome !== "sealed" || !newHead) return { is: "lost" };
    const isMore = entries.length === most;
    return { is: "sealed", head: newHead, count: entries.length, isMore, now };
  }

  async function append(head: Seal | undefined, links: readonly Link[]) {
    const buckets = [...new Set(links.map(({ seal: { seq } }) => names.salts(seq)))];
    const args = links.flatMap(({ seal: one, salt }) => [
      one.seq,
      one.id,
      one.at,
      one.payload,
      one.hash,
      salt,
      buckets.indexOf(names.salts(one.seq)) + 1,
    ]);
    return sealReply.parse(
      await runSeal(
        [names.lease, names.seals, ...buckets],
        [token, leaseMs, head?.hash ?? "", ...args],
      ),
    );
  }

  return { step, seal, release: () => leases.release(names.lease, token) };
}

interface Link {
  seal: Seal;
  salt: string;
}

function link(head: Seal | undefined, firstSeq: number, entries: readonly Entry[]): Link[] {
  let before = head?.hash ?? genesis;
  return entries.map(({ id, at, record }, index) => {
    const salt = randomBytes(16).toString("hex");
    const body = { seq: firstSeq + index, id, at, payload: payloadOf(salt, record) };
    const seal = { ...body, hash: hashOf(before, body) };
    before = seal.hash;
    return { seal, salt };
  });
}
