import { compareNames } from "../../text/compare-names.ts";
import { fold } from "../../text/fold.ts";
import { editDistance } from "../../text/nearest.ts";

/** Shorter names get no suggestions, because one typo makes them another name. */
const shortestToGuess = 3;
/**
 * How many names of each kind a misspelled name is compared with. Comparing it with 100,000 would
 * take too long.
 */
const compared = 250;
/** How many names of each kind are put in the order that people expect before the first are shown. */
const mostInOrder = 1_000;
/** A block with more names is split in two. */
const mostInBlock = 512;

/**
 * A block of names sorted by code unit, so that names that begin alike are together; all less than those of the next block, so that a change affects only one
 * block.
 */
interface Block {
  names: string[];
  /**
   * All names with a line break around each, so that one search tells whether any of them matches.
   * Undefined after a change.
   */
  text: string | undefined;
}

/** An index of IDs by name, ignoring case. `containing` and `near` only serve for suggestions. */
export function createNameIndex() {
  const ids = new Map<string, Set<string>>();
  const blocks: Block[] = [{ names: [], text: undefined }];

  /** Where the name is, or where it would be inserted. */
  function placeOf(name: string): { at: number; block: Block; index: number } {
    // The first block begins before any name.
    const at = Math.max(
      0,
      firstIndex(blocks.length, (n) => (blocks[n]?.names[0] ?? "") > name) - 1,
    );
    const block = blocks[at] ?? { names: [], text: undefined };
    const index = firstIndex(block.names.length, (n) => (block.names[n] ?? "") >= name);
    return { at, block, index };
  }

  function insert(name: string): void {
    const { at, block, index } = placeOf(name);
    block.names.splice(index, 0, name);
    block.text = undefined;
    if (block.names.length <= mostInBlock) return;
    blocks.splice(at + 1, 0, { names: block.names.splice(mostInBlock / 2), text: undefined });
  }

  function takeOut(name: string): void {
    const { at, block, index } = placeOf(name);
    block.names.splice(index, 1);
    block.text = undefined;
    if (block.names.length === 0 && blocks.length > 1) blocks.splice(at, 1);
  }

  /** The names, in order, of each block whose text contains `part`. */
  function* namesIn(part: string): Generator<string> {
    for (const block of blocks) {
      block.text ??= `\n${block.names.join("\n")}\n`;
      if (block.text.includes(part)) yield* block.names;
    }
  }

  /** The names in order around the place where a name is or would be. */
  function around(name: string): string[] {
    const { at, block, index } = placeOf(name);
    const before = block.names.slice(0, index);
    for (let n = at - 1; n >= 0 && before.length < compared; n--)
      before.unshift(...(blocks[n]?.names ?? []));
    const behind = block.names.slice(index);
    for (let n = at + 1; n < blocks.length && behind.length < compared; n++)
      behind.push(...(blocks[n]?.names ?? []));
    return [...before.slice(-compared), ...behind.slice(0, compared)];
  }

  return {
    add(name: string, id: string): void {
      const key = fold(name);
      const bearers = ids.get(key);
      if (bearers) return void bearers.add(id);
      ids.set(key, new Set([id]));
      insert(key);
    },
    remove(name: string, id: string): void {
      const key = fold(name);
      const bearers = ids.get(key);
      if (!bearers?.delete(id) || bearers.size > 0) return;
      ids.delete(key);
      takeOut(key);
    },
    idsOf: (name: string): readonly string[] => [...(ids.get(fold(name)) ?? [])],

    /**
     * Folded names that begin with what was typed, then those with a word that begins with it, then
     * others that contain it.
     */
    containing(typed: string, most: number): string[] {
      const wanted = fold(typed);
      if (wanted === "") return [];
      const [begin, within, others]: [string[], string[], string[]] = [[], [], []];
      for (const name of namesIn(wanted)) {
        const at = name.indexOf(wanted);
        if (at < 0) continue;
        const isWord = "-_. /".includes(name.charAt(at - 1));
        const some = at === 0 ? begin : isWord ? within : others;
        if (some.length < mostInOrder) some.push(name);
        if (begin.length === mostInOrder) break;
      }
      const inOrder = [begin, within, others].flatMap((some) => some.toSorted(compareNames));
      return inOrder.slice(0, most);
    },

    /**
     * Folded names that are one or two typos away, the nearest first. Candidates are the names
     * around it in order, which begin alike, and names that end alike, for a typo at the beginning.
     */
    near(typed: string, most: number): string[] {
      const wanted = fold(typed);
      if (wanted.length < shortestToGuess) return [];
      const allowed = wanted.length < 6 ? 1 : 2;
      const ending = wanted.slice(wanted.length / 2);
      const alike = namesIn(`${ending}\n`).filter((name) => name.endsWith(ending));
      return [...new Set([...around(wanted), ...alike.take(compared)])]
        .map((name) => ({ name, slips: editDistance(wanted, name, allowed) }))
        .filter(({ slips }) => slips <= allowed)
        .toSorted((a, b) => a.slips - b.slips)
        .map(({ name }) => name)
        .slice(0, most);
    },
  };
}

/**
 * The first of `count` indexes for which `holds` is true; it must stay true from there on. Returns
 * `count` when it never is.
 */
function firstIndex(count: number, holds: (index: number) => boolean): number {
  let [from, to] = [0, count];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}
