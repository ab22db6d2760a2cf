import { parseJson } from "../text/parse-json.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { type Anchor, isSignature } from "./anchors.ts";
import { compareIds, type Entry, genesis, isSealedBy, isStreamId } from "./chain.ts";
import { createTrail, type Trail } from "./trail.ts";
import {
  judgeChain,
  type Problem,
  type Verdict,
  createWalk,
  type Step,
  type Walk,
} from "./walk.ts";
import {
  type AuditExport,
  digestOfExport,
  type ExportedRecord,
  exportShape,
  signedExportText,
} from "./export.ts";

const tailPage = 1000;
const tailMost = 100_000;

/**
 * Walks the whole chain in pages and names the first record that is bad.
 *
 * `anchors` are heads kept outside Redis: without them a chain that was cut and continued, or rewritten by someone with
 * write access, looks whole. `from`: begins at this number and trusts the seal before it.
 */
export async function verifyAudit(options: {
  redis: RedisClient;
  key: Keys;
  anchors?: readonly Anchor[];
  from?: number;
  page?: number;
}): Promise<Verdict> {
  const { redis, key, anchors = [], from = 1, page = 1000 } = options;
  const trail = createTrail(redis, key);
  const given = await trail.lastGiven();
  const before = from > 1 ? await trail.sealBefore(from) : undefined;
  const walk = createWalk({
    chain: key.namespace,
    before: { seq: from - 1, hash: before?.hash ?? genesis },
    anchors,
    checkpoints: await trail.checkpoints(from),
  });
  const lastId = await walkPages(trail, walk, { from, behind: before?.id, page });
  const { gone, ...unsealed } = await readTail(trail, walk, lastId, given.id);
  return judgeChain({ ...walk.end(given.seq, gone), unsealed });
}

/** → the id of the last sealed record. */
async function walkPages(
  trail: Trail,
  walk: Walk,
  { from, behind, page }: { from: number; behind: string | undefined; page: number },
): Promise<string | undefined> {
  let id = behind;
  let next = from;
  for (;;) {
    const seals = await trail.seals(next, page);
    // write access to Redis can put anything into a seal
    const last = seals.findLast((seal) => isStreamId(seal.id));
    if (seals.length === 0) return id;
    const [salts, entries] = await Promise.all([
      trail.salts(seals),
      trail.records({ ...(id ? { after: id } : {}), last: last?.id ?? "0-1", most: page * 2 }),
    ]);
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    const steps: Step[] = seals.map((seal) => ({
      seal,
      entry: byId.get(seal.id),
      salt: salts.get(seal.seq),
    }));
    const sealedIds = new Set(seals.map((seal) => seal.id));
    const strangers = entries.filter((entry) => !sealedIds.has(entry.id));
    for (const step of steps) {
      const problem = walk.isStopped
        ? undefined
        : (inserted(step, strangers) ?? swapped(step, steps));
      if (problem) walk.stop(problem);
      walk.step(step);
    }
    id = last?.id ?? id;
    const reached = seals.at(-1)?.seq ?? 0;
    if (reached < next) return id;
    next = reached + 1;
  }
}

function inserted({ seal }: Step, strangers: readonly Entry[]): Problem | undefined {
  const [stranger] = strangers;
  if (!stranger || compareIds(stranger.id, seal.id) > 0) return undefined;
  const says = `an unsealed record comes before record ${seal.seq}`;
  return { seq: seal.seq, id: stranger.id, kind: "inserted", says };
}

/** The record was sealed, but as another one nearby. */
function swapped({ seal, entry, salt }: Step, nearby: readonly Step[]): Problem | undefined {
  if (!entry || isSealedBy(entry, seal, salt)) return undefined;
  const home = nearby.find(
    (other) =>
      other.seal !== seal && isSealedBy({ ...entry, at: other.seal.at }, other.seal, other.salt),
  );
  if (!home) return undefined;
  const says = `the record is the one that was sealed as record ${home.seal.seq}`;
  return { seq: seal.seq, id: seal.id, kind: "swapped", says };
}

/** Reads what waits to be sealed. `given`: the last ID that Redis gave to a record; `gone` when that record is missing. */
async function readTail(
  trail: Trail,
  walk: Walk,
  after: string | undefined,
  given: string,
): Promise<{ count: number; oldestMs: number; gone?: string }> {
  let count = 0;
  let oldest: number | undefined;
  let id = after;
  for (; count < tailMost;) {
    const entries = await trail.records({ ...(id ? { after: id } : {}), most: tailPage });
    for (const entry of entries) walk.tail(entry.record);
    oldest ??= entries[0] && Number(entries[0].at);
    count += entries.length;
    id = entries.at(-1)?.id ?? id;
    if (entries.length < tailPage) break;
  }
  const isGone = count < tailMost && compareIds(given, id ?? "0-0") > 0;
  const oldestMs = oldest === undefined ? 0 : Math.max(0, (await trail.now()) - oldest);
  return { count, oldestMs, ...(isGone ? { gone: given } : {}) };
}

/**
 * Verifies an export offline. `json`: the file's text or its parsed value. With `trustedKeys` (base64, SPKI) only their
 * signatures count, and one of them must have signed the file.
 */
export function verifyExport(
  json: unknown,
  known: { anchors?: readonly Anchor[]; trustedKeys?: readonly string[] } = {},
): Verdict {
  const file = exportShape.safeParse(typeof json === "string" ? parseJson(json) : json).data;
  if (!file) return broken(0, "this isn't an audit export, or it is damaged");
  const { anchors = [], trustedKeys } = known;
  const begun = { seq: file.from - 1, hash: file.before };
  const walk = createWalk({
    chain: file.chain,
    before: begun,
    anchors,
    checkpoints: file.checkpoints,
    ...(trustedKeys ? { trustedKeys } : {}),
  });
  for (const record of file.records) walk.step(stepOf(record));
  const found = walk.end(file.to);
  const first = found.problem ?? fileProblem(file, begun, trustedKeys);
  const unsealed = { count: 0, oldestMs: 0 };
  return judgeChain({ ...found, ...(first ? { problem: first } : {}), unsealed });
}

function stepOf({ without, record, salt, ...seal }: ExportedRecord): Step {
  const { id, at } = seal;
  return {
    seal,
    entry: record === undefined ? undefined : { id, at, record },
    salt,
    isWithheld: without === "withheld" && record === undefined,
  };
}

/** Everything beside the records. */
function fileProblem(
  file: AuditExport,
  begun: { seq: number; hash: string },
  trustedKeys: readonly string[] | undefined,
): Problem | undefined {
  const { digest, signature, ...rest } = file;
  const { signedBy } = file;
  const last = file.records.at(-1) ?? begun;
  const isHead = file.head.seq === last.seq && file.head.hash === last.hash && file.to === last.seq;
  if (!isHead) return fileFault(file.from, "the head is not the end of its records");
  if (digestOfExport(rest) !== digest) return fileFault(file.from, "the file was changed");
  if (signedBy !== null || signature !== undefined) {
    const isRight = isSignature(signedExportText(digest), signedBy ?? "", signature ?? "");
    if (!isRight) return fileFault(file.from, "the file's signature is wrong");
  }
  if (!trustedKeys || (signedBy !== null && trustedKeys.includes(signedBy))) return undefined;
  return fileFault(file.from, "the file isn't signed by a trusted key");
}

function fileFault(seq: number, says: string): Problem {
  return { seq, kind: "file", says };
}

function broken(seq: number, says: string): Verdict {
  return {
    is: "broken",
    problem: fileFault(seq, says),
    problems: [fileFault(seq, says)],
    recorded: [],
    sealed: 0,
    erased: 0,
    withheld: 0,
    unsealed: { count: 0, oldestMs: 0 },
    anchors: 0,
    signed: { seq: 0, keys: [] },
  };
}
