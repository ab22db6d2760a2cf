import { stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { UserError } from "../errors.ts";
import { printableLine } from "../text/printable.ts";
import { endorsementNamed } from "../verifier/inspect-endorsement.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import {
  listEndorsements,
  type Listed,
  readEndorsement,
  storeEndorsement,
} from "./endorsement-folder.ts";

interface FolderTerminal {
  write: (text: string) => void;
  folder: string | undefined;
  now: number;
  roots: TrustedRoots;
}

const dayMs = 86_400_000;
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** What the folder holds and until when, what is wrong first. 0 when everything holds, else 1. */
export async function showStatus({ write, folder, now, roots }: FolderTerminal): Promise<0 | 1> {
  const all = await listEndorsements(named(folder), { roots, now }).catch((error: unknown) => {
    throw new UserError(`${named(folder)} can't be read: ${String(error)}`);
  });
  if (all.length === 0) {
    write(`There is no endorsement in ${named(folder)}; docs/attestation.md names the files.\n`);
    return 1;
  }
  const rows = all.map((one) => ({ ...one, ...judged(one, now) }));
  const sorted = rows.toSorted((a, b) => a.until - b.until || a.name.localeCompare(b.name));
  for (const { sign, says, name } of sorted)
    write(`${sign} ${printableLine(says).padEnd(34)} ${name}\n`);
  return rows.every(({ isGood }) => isGood) ? 0 : 1;
}

function judged({ inspected }: Listed, now: number) {
  if ("problem" in inspected)
    return { isGood: false, sign: "BAD ", says: inspected.problem, until: -Infinity };
  const { from, until } = inspected;
  const days = Math.floor((until - now) / dayMs);
  if (now < from) return { isGood: false, sign: "BAD ", says: `begins on ${dayOf(from)}`, until };
  if (now > until) return { isGood: false, sign: "BAD ", says: `ended on ${dayOf(until)}`, until };
  return { isGood: true, sign: "good", says: `until ${dayOf(until)} (${days} days)`, until };
}

/**
 * Takes over endorsements from elsewhere, a medium from a machine with a network first of all: folders laid out alike, or single
 * files in one. Each is checked; an older one never replaces a newer. 0 when all were taken or were there, else 1.
 */
export async function importEndorsements(
  sources: readonly string[],
  { write, folder, now, roots }: FolderTerminal,
): Promise<0 | 1> {
  const into = named(folder);
  let isGood = sources.length > 0;
  for (const source of sources) {
    const found = await namesIn(source, { roots, now });
    if (found.length === 0) {
      write(`${source}: no endorsement by its name; docs/attestation.md names the files\n`);
      isGood = false;
    }
    for (const { from, name } of found) {
      const files = await readEndorsement(from, name);
      const stored =
        "problem" in files
          ? { refused: files.problem }
          : await storeEndorsement(into, name, files, { now, roots, url: resolve(from, name) });
      if (typeof stored !== "string") isGood = false;
      const says = typeof stored === "string" ? words[stored] : `refused: ${stored.refused}`;
      write(`${name}: ${printableLine(says)}\n`);
    }
  }
  return isGood ? 0 : 1;
}

const words = { stored: "imported", kept: "kept what is there, which is as new or newer" } as const;

function named(folder: string | undefined): string {
  if (folder !== undefined) return folder;
  throw new UserError(
    "No folder of endorsements is named",
    "attestation.endorsements in gatehouse.yml names it, or --endorsements <folder>",
  );
}

async function namesIn(source: string, by: { roots: TrustedRoots; now: number }) {
  const path = resolve(source);
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new UserError(`There is no ${source}`);
  if (found.isDirectory())
    return (await listEndorsements(path, by)).map(({ name }) => ({ from: path, name }));
  // A file is known by the end of its path
  const parts = path.split(sep);
  const at = [4, 3, 2].find((many) => endorsementNamed(parts.slice(-many).join("/")));
  if (at === undefined) return [];
  return [{ from: parts.slice(0, -at).join(sep) || sep, name: parts.slice(-at).join("/") }];
}
