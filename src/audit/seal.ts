import { randomBytes } from "node:crypto";
import { z } from "zod";
import { defineScript } from "../redis.ts";
import { type Entry, genesis, hashOf, payloadOf, type Seal } from "./chain.ts";
import * as scripts from "./scripts.ts";
import { parseEntry, parseSeal, type Trail } from "./trail.ts";

/** What one step of sealing came to. `lagMs`: how long the oldest record that is not sealed yet has waited. */
export type SealStep =
  | { is: "sealed"; head: Seal; count: number; isMore: boolean; lagMs: number; now: number }
  | { is: "idle"; head: Seal | undefined; now: number }
  /** Another process seals. */
  | { is: "busy"; head: Seal | undefined; lagMs: number; now: number }
  /** Somebody sealed in between: the next step begins at the new head. */
  | { is: "lost" }
  /** Seals are missing at the end: numbers up to this one were given before. */
  | { is: "cut"; head: Seal | undefined; given: number };

export interface Sealing {
  /** Seals at most `most` records. The first gets a number above `floor`, which is 0 unless the chain was cut. */
  step(floor: number, most: number): Promise<SealStep>;
  release(): Promise<void>;
}

const row = z.tuple([z.string(), z.array(z.string())]);
const beginReply = z.tuple([
  z.enum(["mine", "busy"]),
  z.number(),
  z.union([row, z.tuple([])]),
  z.array(row),
]);

/** One sealer's hand on the chain: `token` is its name in the lease, which runs out `leaseMs` after its last step. */
export function createSealing(trail: Trail, token: string, leaseMs: number): Sealing {
  const { names, redis } = trail;
  const runBegin = defineScript(redis, "gatehouseAuditBegin", scripts.begin);
  const runSeal = defineScript(redis, "gatehouseAuditSeal", scripts.seal);
  const runRelease = defineScript(redis, "gatehouseAuditRelease", scripts.release);

  async function step(floor: number, most: number): Promise<SealStep> {
    const [whose, now, last, rows] = beginReply.parse(
      await runBegin([names.lease, names.seals, names.records], [token, leaseMs, most]),
    );
    const head = last.length === 0 ? undefined : parseSeal(last);
    const entries = rows.map(parseEntry);
    const [oldest] = entries;
    const lagMs = oldest ? Math.max(0, now - Number(oldest.at)) : 0;
    if (whose === "busy") return { is: "busy", head, lagMs, now };
    if (!oldest) return { is: "idle", head, now };
    const links = link(head, Math.max(head?.seq ?? 0, floor) + 1, entries);
    const outcome = await append(head, links);
    if (outcome === "cut") return { is: "cut", head, given: (await trail.lastGiven()).seq };
    const newHead = links.at(-1)?.seal;
    if (outcome !== "sealed" || !newHead) return { is: "lost" };
    const isMore = entries.length === most;
    return { is: "sealed", head: newHead, count: entries.length, isMore, lagMs, now };
  }

  async function append(head: Seal | undefined, links: readonly Link[]): Promise<string> {
    const buckets = [...new Set(links.map(({ seal }) => names.salts(seal.seq)))];
    const args = links.flatMap(({ seal, salt }) => [
      seal.seq,
      seal.id,
      seal.at,
      seal.payload,
      seal.hash,
      salt,
      buckets.indexOf(names.salts(seal.seq)) + 1,
    ]);
    return String(
      await runSeal(
        [names.lease, names.seals, ...buckets],
        [token, leaseMs, head?.hash ?? "", ...args],
      ),
    );
  }

  return {
    step,
    async release() {
      await runRelease([names.lease], [token]);
    },
  };
}

interface Link {
  seal: Seal;
  salt: string;
}

/** Pure but for the salts. */
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
