import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../errors.ts";
import { FileRefusedError, readRegular } from "../regular-file.ts";
import {
  chainNameOf,
  type EndorsementFiles,
  endorsementNamed,
  type Inspected,
  inspectEndorsement,
} from "../verifier/inspect-endorsement.ts";
import { isOlder } from "../verifier/newest.ts";
import type { TrustedRoots } from "../verifier/roots.ts";

/** Far more than any list or statement has; what is larger is none. */
export const mostBytes = 1024 * 1024;

/** A file of the folder; undefined when it isn't there or is empty, a word on what is there instead of a file. */
export async function readSmall(
  folder: string,
  name: string,
): Promise<Buffer | { problem: string } | undefined> {
  try {
    const content = await readRegular(join(folder, name), mostBytes);
    return content.length > 0 ? content : undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (!(error instanceof FileRefusedError))
      return { problem: `it can't be read (${codeOf(error)})` };
    return { problem: error.code === "TOO_LARGE" ? "it is too large" : "it is not a regular file" };
  }
}

/** An endorsement with its chain, by its name in the folder; or why there is none. */
export async function readEndorsement(
  folder: string,
  name: string,
): Promise<EndorsementFiles | { problem: string }> {
  const chainName = chainNameOf(name);
  const content = await readSmall(folder, name);
  if (!Buffer.isBuffer(content)) return content ?? { problem: "it is missing or empty" };
  const chain = chainName && (await readSmall(folder, chainName));
  return { content, chain: Buffer.isBuffer(chain) ? chain.toString("latin1") : undefined };
}

export interface Listed {
  name: string;
  inspected: Inspected;
}

/** Everything in the folder that is an endorsement by its name, checked up to the roots. */
export async function listEndorsements(
  folder: string,
  by: { roots: TrustedRoots; now: number },
): Promise<Listed[]> {
  const entries = await readdir(folder, { recursive: true });
  const listed: Listed[] = [];
  for (const name of entries.map((entry) => entry.replaceAll("\\", "/")).toSorted()) {
    const kind = endorsementNamed(name);
    if (!kind) continue;
    // oxlint-disable-next-line no-await-in-loop -- a few small files
    const files = await readEndorsement(folder, name);
    const inspected = "problem" in files ? files : inspectEndorsement(kind, files, by);
    listed.push({ name, inspected });
  }
  return listed;
}

export type Stored = "stored" | "kept" | { refused: string };

/**
 * Puts an endorsement into the folder: only what holds now, up to the roots, and never an older one over a newer, which the
 * higher number is. A reader sees the old file or the new one, never a part of it.
 */
export async function storeEndorsement(
  folder: string,
  name: string,
  files: EndorsementFiles,
  { now, roots, url }: { now: number; roots: TrustedRoots; url: string },
): Promise<Stored> {
  const kind = endorsementNamed(name);
  if (!kind) return { refused: "its name is none of an endorsement" };
  const inspected = inspectEndorsement(kind, files, { roots, now });
  if ("problem" in inspected) return { refused: inspected.problem };
  if (now > inspected.until) return { refused: `it ended on ${dayOf(inspected.until)}` };
  if (now < inspected.from) return { refused: `it begins on ${dayOf(inspected.from)}` };
  const there = await readEndorsement(folder, name);
  const known = "problem" in there ? there : inspectEndorsement(kind, there, { roots, now });
  if (!("problem" in known) && !isOlder(known, inspected)) return "kept";
  const chainName = chainNameOf(name);
  if (chainName !== undefined) await replace(join(folder, chainName), files.chain ?? "");
  await replace(join(folder, name), files.content);
  const sha256 = createHash("sha256").update(files.content).digest("hex");
  const meta = { url, fetchedAt: new Date(now).toISOString(), sha256 };
  await replace(join(folder, `${name}.meta.json`), `${JSON.stringify(meta)}\n`);
  return "stored";
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

async function replace(path: string, content: Buffer | string): Promise<void> {
  const beside = `${path}.${randomUUID()}.new`;
  await mkdir(dirname(path), { recursive: true });
  try {
    await writeFile(beside, content, { flush: true });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
