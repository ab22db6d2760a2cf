import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../errors.ts";
import { FileRefusedError, readRegular } from "../regular-file.ts";
import { dayOf } from "../verifier/appraise-evidence.ts";
import { decodeAnswer, decodeChain, decodeDer, decodeVek } from "../verifier/endorsement-form.ts";
import { isOlder } from "../verifier/examination.ts";
import {
  chainNameOf,
  type EndorsementFiles,
  endorsementNamed,
  type By,
  type Inspected,
  inspectEndorsement,
} from "../verifier/inspect-endorsement.ts";
import { type Product, products } from "../verifier/roots.ts";
import type { SignedAnswer } from "../verifier/tdx/collateral.ts";
import type { Endorsements, Needed } from "../verifier/verify-evidence.ts";

/**
 * Reads and fills the folder with the vendors' signed files. An operator or the refresher puts them
 * there, as they came or in another form of the same bytes (`endorsement-form.ts`):
 *
 *     intel/root.crl  intel/pck-platform.crl  intel/pck-processor.crl  intel/tdx-qe.json  intel/tdx-qe.pem
 *     intel/tcb/<fmspc>.json  intel/tcb/<fmspc>.pem  intel/tcb/<fmspc>.early.json and .pem (what Intel requires next)
 *     intel/pck-<ca>.pem (the chain of its list, for `attestation status` and `import`)
 *     amd/<product>/vcek.crl  amd/<product>/vlek.crl  amd/<product>/vcek/<chip ID>-<reported TCB>.der
 *
 * Nothing in it is trusted. Each verification checks every signature and date up to the roots in
 * the source, so somebody who can write to the folder can prevent a VM from being verified, but
 * never make one verified. Names consist of fixed words and hex digits only.
 */

/** Far more than any list or statement has. A larger file isn't one. */
export const mostBytes = 1024 * 1024;

/**
 * A file of the folder, or the reason why it can't be used. The reason is empty when the file is
 * missing or empty.
 */
async function readSmall(folder: string, name: string): Promise<Buffer | string> {
  try {
    const content = await readRegular(join(folder, name), mostBytes);
    return content.length > 0 ? content : "";
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "";
    if (!(error instanceof FileRefusedError)) return `it can't be read (${codeOf(error)})`;
    return error.code === "TOO_LARGE" ? "it is too large" : "it is not a regular file";
  }
}

type OfIntel = Needed & { tee: "tdx" };
type OfAmd = Needed & { tee: "snp" };

const intelFiles = ({ fmspc, ca }: OfIntel) => ({
  tcbInfo: `intel/tcb/${fmspc}.json`,
  early: `intel/tcb/${fmspc}.early.json`,
  qeIdentity: "intel/tdx-qe.json",
  pckCrl: `intel/pck-${ca}.crl`,
  rootCrl: "intel/root.crl",
});

/** KDS names Turin's chips by eight bytes. */
const amdFiles = (product: Product, { signer, chipId, reportedTcb }: OfAmd) => ({
  crl: `amd/${product}/${signer.toLowerCase()}.crl`,
  vek: `amd/${product}/vcek/${product === "Turin" ? chipId.slice(0, 16) : chipId}-${reportedTcb}.der`,
});

/**
 * The files that some evidence needs and that the vendor gives to everybody, by their names in the
 * folder.
 */
export function namesNeeded(needed: Needed): readonly string[] {
  if (needed.tee === "tdx") return Object.values(intelFiles(needed));
  if (!needed.product) return [];
  const { crl, vek } = amdFiles(needed.product, needed);
  const hasChip = needed.signer === "VCEK" && !/^0*$/.test(needed.chipId);
  return hasChip ? [crl, vek] : [crl];
}

/**
 * The endorsements that some evidence needs. Empty when no folder is named, or nothing is known
 * about the evidence. `early` is what Intel will require of this platform next, if the folder has
 * it. `absent` are the needed files that are missing, by their names in the folder.
 */
export async function findEndorsements(
  folder: string | undefined,
  needed: Needed | undefined,
): Promise<{ endorsements: Endorsements; early?: SignedAnswer | undefined; absent: string[] }> {
  if (folder === undefined || !needed) return { endorsements: {}, absent: [] };
  const missing: string[] = [];
  const readNamed = async (name: string, absent = missing): Promise<Buffer | undefined> => {
    const bytes = await readSmall(folder, name);
    if (typeof bytes !== "string") return decodeNamed(name, bytes);
    absent.push(bytes === "" ? name : `${name} (${bytes})`);
    return undefined;
  };
  const answer = async (name: string, absent = missing): Promise<SignedAnswer | undefined> => {
    const body = await readNamed(name, absent);
    const chain = await readNamed(chainNameOf(name) ?? "", absent);
    return body && chain && { body: decodeAnswer(body), chain: decodeChain(chain) };
  };
  if (needed.tee === "tdx") {
    const { tcbInfo, early, qeIdentity, pckCrl, rootCrl } = intelFiles(needed);
    const intel = {
      tcbInfo: await answer(tcbInfo),
      qeIdentity: await answer(qeIdentity),
      pckCrl: await readNamed(pckCrl),
      rootCrl: await readNamed(rootCrl),
    };
    // This file only serves for warnings, so it doesn't count as missing.
    return { endorsements: { intel }, early: await answer(early, []), absent: missing };
  }
  const product = await productIn(folder, needed);
  const { crl, vek } = amdFiles(product ?? "Milan", needed);
  const amd = {
    // A VLEK comes with its report and isn't in the folder.
    vek: needed.signer === "VCEK" ? await readNamed(vek) : undefined,
    crl: product && (await readNamed(crl)),
  };
  return { endorsements: { amd }, absent: missing };
}

/**
 * The product of a report. A report of version 2 doesn't name it, so the place of its certificate
 * in the folder tells.
 */
async function productIn(folder: string, needed: OfAmd): Promise<Product | undefined> {
  if (needed.product || needed.signer === "VLEK") return needed.product;
  for (const product of products)
    // oxlint-disable-next-line no-await-in-loop -- stops at the product whose certificate is there
    if (await readSmall(folder, amdFiles(product, needed).vek)) return product;
  return undefined;
}

/** An endorsement with its chain, by its name in the folder; or why there is none. */
export async function readEndorsement(
  folder: string,
  name: string,
): Promise<EndorsementFiles | { problem: string }> {
  const chainName = chainNameOf(name);
  const content = await readSmall(folder, name);
  if (typeof content === "string") return { problem: content || "it is missing or empty" };
  const chain = chainName && (await readSmall(folder, chainName));
  return decoded(name, { content, chain: typeof chain === "object" ? chain : undefined });
}

/** A list, a certificate, or an answer in the folder, in the form that the verifier reads. */
function decodeNamed(name: string, content: Buffer): Buffer {
  if (name.endsWith(".crl")) return decodeDer(content, "X509 CRL");
  if (name.endsWith(".der")) return decodeVek(content);
  return content;
}

/** Decodes an endorsement together with the chain that signed it. */
function decoded(
  name: string,
  { content, chain }: { content: Buffer; chain?: Buffer | undefined },
): EndorsementFiles {
  const isAnswer = name.endsWith(".json");
  return {
    content: isAnswer ? Buffer.from(decodeAnswer(content)) : decodeNamed(name, content),
    chain: chain && decodeChain(chain),
  };
}

const unnamed = "its name isn't an endorsement's";

/** Inspects the file with that name in the folder, checked up to the roots. */
export async function inspectStored(folder: string, name: string, trust: By): Promise<Inspected> {
  const kind = endorsementNamed(name);
  if (!kind) return { problem: unnamed };
  const files = await readEndorsement(folder, name);
  return "problem" in files ? files : inspectEndorsement(kind, files, trust);
}

/**
 * Inspects every file in the folder whose name is that of an endorsement, checked up to the roots.
 */
export async function listEndorsements(folder: string, trust: By) {
  const entries = await readdir(folder, { recursive: true });
  const names = entries.map((entry) => entry.replaceAll("\\", "/")).toSorted();
  // Files are read one after the other, because there may be thousands of them, and file
  // descriptors are limited.
  return Array.fromAsync(
    names.filter((name) => endorsementNamed(name)),
    async (name) => ({ name, inspected: await inspectStored(folder, name, trust) }),
  );
}

/** Undefined within the validity, otherwise `ended on 2026-03-01` or `begins on …`. */
export function outOfTime(
  { from, until }: { from: number; until: number },
  now: number,
): string | undefined {
  if (now < from) return `begins on ${dayOf(from)}`;
  return now > until ? `ended on ${dayOf(until)}` : undefined;
}

export type Stored = "stored" | "kept" | { refused: string };

/**
 * Stores an endorsement in the folder. It must be valid now, up to the roots, and never replaces a
 * newer one (the higher number is newer). A reader sees either the old file or the new one, never a
 * part.
 */
export async function storeEndorsement(
  folder: string,
  name: string,
  given: EndorsementFiles | { problem: string },
  trust: By,
): Promise<Stored> {
  if ("problem" in given) return { refused: given.problem };
  const kind = endorsementNamed(name);
  if (!kind) return { refused: unnamed };
  const { content, chain } = given;
  const files = decoded(name, { content, chain: chain === undefined ? chain : Buffer.from(chain) });
  const inspected = inspectEndorsement(kind, files, trust);
  if ("problem" in inspected) return { refused: inspected.problem };
  const ended = outOfTime(inspected, trust.now);
  if (ended !== undefined) return { refused: `it ${ended}` };
  const known = await inspectStored(folder, name, trust);
  if (!("problem" in known) && !isOlder(known, inspected)) return "kept";
  const chainName = chainNameOf(name);
  if (chainName !== undefined) await replace(join(folder, chainName), files.chain ?? "");
  await replace(join(folder, name), files.content);
  return "stored";
}

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
