import { products, type Product } from "../verifier/roots.ts";
import type { Endorsements, Needed } from "../verifier/verify-evidence.ts";
import type { SignedAnswer } from "../verifier/tdx/collateral.ts";
import { readSmall } from "./endorsement-folder.ts";

export interface FoundEndorsements {
  endorsements: Endorsements;
  /** What Intel will ask of this platform next, where the folder has it. */
  early?: SignedAnswer;
  /** Files that are needed and not there, as they are named in the folder. */
  absent: readonly string[];
}

/**
 * What vendors have signed, in files that an operator or a refresher put into a folder, byte for byte as they came:
 *
 *     intel/root.crl  intel/pck-platform.crl  intel/pck-processor.crl  intel/tdx-qe.json  intel/tdx-qe.pem
 *     intel/tcb/<fmspc>.json  intel/tcb/<fmspc>.pem  intel/tcb/<fmspc>.early.json and .pem (what Intel will ask for next)
 *     intel/pck-<ca>.pem (the chain of its list, for `attestation status` and `import`)
 *     amd/<product>/vcek.crl  amd/<product>/vlek.crl  amd/<product>/vcek/<chip ID>-<reported TCB>.der
 *
 * Nothing in it is believed: each verification checks every signature and date up to the roots in the source, so that who
 * can write the folder can keep a VM from being verified, and never have one verified. Names are made of fixed words and
 * hex digits alone.
 */
export async function findEndorsements(folder: string, needed: Needed): Promise<FoundEndorsements> {
  const absent: string[] = [];
  const read = async (name: string): Promise<Buffer | undefined> => {
    const bytes = await readSmall(folder, name);
    if (Buffer.isBuffer(bytes)) return bytes;
    absent.push(bytes ? `${name} (${bytes.problem})` : name);
    return undefined;
  };
  const answer = async (name: string): Promise<SignedAnswer | undefined> => {
    const [body, chain] = [await read(`${name}.json`), await read(`${name}.pem`)];
    return body && chain && { body: body.toString("utf8"), chain: chain.toString("latin1") };
  };
  if (needed.tee === "tdx") {
    const early = await earlyAnswer(folder, needed.fmspc);
    const intel = {
      tcbInfo: await answer(`intel/tcb/${needed.fmspc}`),
      qeIdentity: await answer("intel/tdx-qe"),
      pckCrl: await read(`intel/pck-${needed.ca}.crl`),
      rootCrl: await read("intel/root.crl"),
    };
    return { endorsements: { intel }, absent, ...(early ? { early } : {}) };
  }
  const { product, vek, problem } = await findVek(folder, needed);
  // A VLEK comes with its report, and is on no one's disk
  if (!vek && needed.signer === "VCEK")
    absent.push(`${vekFile(product ?? "Milan", needed)}${problem ? ` (${problem})` : ""}`);
  const crl = product && (await read(`amd/${product}/${needed.signer.toLowerCase()}.crl`));
  return { endorsements: { amd: { ...(vek ? { vek } : {}), crl } }, absent };
}

async function earlyAnswer(folder: string, fmspc: string): Promise<SignedAnswer | undefined> {
  const [body, chain] = await Promise.all(
    ["json", "pem"].map((end) => readSmall(folder, `intel/tcb/${fmspc}.early.${end}`)),
  );
  if (!Buffer.isBuffer(body) || !Buffer.isBuffer(chain)) return undefined;
  return { body: body.toString("utf8"), chain: chain.toString("latin1") };
}

/** The files that evidence needs and that a vendor gives to everybody, as they are named in the folder. */
export function namesNeeded(needed: Needed): readonly string[] {
  if (needed.tee === "tdx")
    return [
      `intel/tcb/${needed.fmspc}.json`,
      `intel/tcb/${needed.fmspc}.early.json`,
      "intel/tdx-qe.json",
      `intel/pck-${needed.ca}.crl`,
      "intel/root.crl",
    ];
  const { product, signer, chipId } = needed;
  if (!product) return [];
  const hasChip = signer === "VCEK" && !/^0*$/.test(chipId);
  return [
    `amd/${product}/${signer.toLowerCase()}.crl`,
    ...(hasChip ? [vekFile(product, needed)] : []),
  ];
}

type NeededOfAmd = Needed & { tee: "snp" };

/** KDS names Turin's chips by eight bytes. */
function vekFile(product: Product, { chipId, reportedTcb }: NeededOfAmd): string {
  const hwid = product === "Turin" ? chipId.slice(0, 16) : chipId;
  return `amd/${product}/vcek/${hwid}-${reportedTcb}.der`;
}

/** A report of version 2 doesn't say of which product it is: the certificate's place does. */
async function findVek(
  folder: string,
  needed: NeededOfAmd,
): Promise<{ product?: Product; vek?: Buffer; problem?: string }> {
  if (needed.signer === "VLEK") return needed.product ? { product: needed.product } : {};
  for (const product of needed.product ? [needed.product] : products) {
    // oxlint-disable-next-line no-await-in-loop -- the first of three
    const vek = await readSmall(folder, vekFile(product, needed));
    if (Buffer.isBuffer(vek)) return { product, vek };
    if (vek) return { product, ...vek };
  }
  return needed.product ? { product: needed.product } : {};
}
