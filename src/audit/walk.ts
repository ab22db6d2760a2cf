import { startOf } from "./cut.ts";
import { type Seal, type TrailEntry, compareIds, isStreamId } from "./seal.ts";
import type { Trail } from "./trail.ts";

/**
 * The loops over the trail, which hold one page at a time, so that a trail of any size is read in
 * the memory of a page: `walk` with seals, records, and salts, `recordPages` and `newestPages` with
 * records alone, `sealPages` with seals alone.
 */

/** How many records or seals a page has where nothing else is said. */
const usualPage = 1000;

/**
 * One step of the trail: a seal with its record and salt, both of which are missing for an erased
 * record; or a record without a seal.
 */
export interface TrailStep {
  seal?: Seal | undefined;
  entry?: TrailEntry | undefined;
  salt?: string | undefined;
}

/**
 * The trail in order, in pages: each seal with its record, in between the records that no seal
 * covers, and at the end the records that wait to be sealed.
 */
export async function* walk(
  trail: Trail,
  most: number = usualPage,
): AsyncGenerator<readonly TrailStep[]> {
  // Archived records may still be in Redis, because they are removed page by page. They are no
  // part of the trail.
  const cut = await trail.cut();
  let after = cut?.id;
  for await (const page of sealPages(trail, startOf(cut).seq + 1, most)) {
    // Somebody with write access to Redis can put anything into a seal.
    const last = page.findLast((seal) => isStreamId(seal.id))?.id;
    const [salts, entries] = await Promise.all([
      trail.salts(page),
      trail.records({ after, last: last ?? "0-1", most: most * 2 }),
    ]);
    after = last ?? after;
    yield joined(page, salts, entries);
  }
  for await (const entries of recordPages(trail, after, most))
    yield entries.map((entry) => ({ entry }));
}

/** Seals from this number on. No page is empty. */
export async function* sealPages(
  trail: Pick<Trail, "seals">,
  fromSeq: number,
  most: number = usualPage,
): AsyncGenerator<readonly Seal[]> {
  for (let next = fromSeq; ;) {
    const page = await trail.seals(next, most);
    const reached = page.at(-1)?.seq;
    if (reached === undefined) return;
    yield page;
    // A forged ID has no number.
    if (reached < next) return;
    next = reached + 1;
  }
}

/** Records younger than `after`, oldest first. No page is empty. */
export async function* recordPages(
  trail: Pick<Trail, "records">,
  after: string | undefined,
  most: number = usualPage,
): AsyncGenerator<readonly TrailEntry[]> {
  for (let from = after; ;) {
    const page = await trail.records({ after: from, most });
    if (page.length > 0) yield page;
    if (page.length < most) return;
    from = page.at(-1)?.id;
  }
}

/** Records older than `before`, newest first. No page is empty. */
export async function* newestPages(
  trail: Pick<Trail, "recordsBefore">,
  before: string | undefined,
  most: number = usualPage,
): AsyncGenerator<readonly TrailEntry[]> {
  for (let to = before; ;) {
    const page = await trail.recordsBefore(to, most);
    if (page.length > 0) yield page;
    if (page.length < most) return;
    to = page.at(-1)?.id;
  }
}

/** A seal with the hash that it follows and its salt. */
interface SealInChain {
  seal: Seal;
  before: string;
  salt: string | undefined;
}

/** The seals of these records, by the record's ID. A record that isn't sealed is missing. */
export async function sealsOf(
  trail: Trail,
  ids: readonly string[],
  most: number = usualPage,
): Promise<ReadonlyMap<string, SealInChain>> {
  const wanted = new Set(ids);
  const sealed = new Map<string, SealInChain>();
  const [oldest] = [...wanted].toSorted(compareIds);
  const first = oldest === undefined ? undefined : await trail.firstSealFrom(oldest);
  if (!first) return sealed;
  let before = ((await trail.sealBefore(first.seq)) ?? startOf(await trail.cut())).hash;
  for await (const page of sealPages(trail, first.seq, most)) {
    const salts = await trail.salts(page.filter(({ id }) => wanted.has(id)));
    for (const seal of page) {
      if (wanted.has(seal.id)) sealed.set(seal.id, { seal, before, salt: salts.get(seal.seq) });
      before = seal.hash;
    }
    if (sealed.size === wanted.size) break;
  }
  return sealed;
}

/**
 * Merges seals with their entries. An entry without a seal comes before the first seal of a younger
 * record.
 */
function joined(
  seals: readonly Seal[],
  salts: ReadonlyMap<number, string>,
  entries: readonly TrailEntry[],
): readonly TrailStep[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const sealedIds = new Set(seals.map(({ id }) => id));
  const others = entries.filter(({ id }) => !sealedIds.has(id));
  return seals.flatMap((seal) => {
    const older = others.filter(({ id }) => compareIds(id, seal.id) < 0);
    others.splice(0, older.length);
    const step = { seal, entry: byId.get(seal.id), salt: salts.get(seal.seq) };
    return [...older.map((entry) => ({ entry })), step];
  });
}
