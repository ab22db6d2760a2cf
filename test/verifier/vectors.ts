import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Endorsements } from "../../src/verifier/verify-evidence.ts";
import type { Product, TrustedRoots } from "../../src/verifier/roots.ts";

export interface Vector {
  id: string;
  tee: "tdx" | "snp";
  evidence: string;
  collateral?: string;
  vek?: string;
  issuer?: string;
  root: string;
  crl?: string;
  product?: Product;
  at: string;
  verifiesFrom?: string;
  verifiesUntil?: string;
  expect: {
    result: "authentic" | "rejected" | "unverifiable";
    reason?: string;
    tcbStatus?: string;
    findings?: string[];
  };
  parsed: Record<string, unknown> | null;
}

const folder = join(import.meta.dirname, "vectors");

export const readVectorFile = (name: string): Buffer => readFileSync(join(folder, name));

export const vectors: readonly Vector[] = (
  JSON.parse(readVectorFile("vectors.json").toString("utf8")) as { vectors: Vector[] }
).vectors;

export function vectorOf(id: string): Vector {
  const found = vectors.find((one) => one.id === id);
  if (!found) throw new Error(`there is no vector ${id}`);
  return found;
}

/** As Intel's service answers, put together from the form in which the collateral was published. */
export function intelOf(file: string): Required<NonNullable<Endorsements["intel"]>> {
  const parts: Record<string, string> = JSON.parse(readVectorFile(file).toString("utf8"));
  const at = (name: string) => parts[name] ?? "";
  return {
    tcbInfo: {
      body: `{"tcbInfo":${at("tcb_info")},"signature":"${at("tcb_info_signature")}"}`,
      chain: at("tcb_info_issuer_chain"),
    },
    qeIdentity: {
      body: `{"enclaveIdentity":${at("qe_identity")},"signature":"${at("qe_identity_signature")}"}`,
      chain: at("qe_identity_issuer_chain"),
    },
    pckCrl: Buffer.from(at("pck_crl"), "hex"),
    rootCrl: Buffer.from(at("root_ca_crl"), "hex"),
  };
}

export function endorsementsOf({ collateral, vek, crl }: Vector): Endorsements {
  return {
    ...(collateral === undefined ? {} : { intel: intelOf(collateral) }),
    ...(vek === undefined || crl === undefined
      ? {}
      : { amd: { vek: readVectorFile(vek), crl: readVectorFile(crl) } }),
  };
}

/** The roots that a vector names, read from their files and not from the source. */
export function rootsOf(
  of: TrustedRoots,
  { tee, root, issuer, product, id }: Vector,
): TrustedRoots {
  const der = readVectorFile(root);
  if (tee === "tdx") return { ...of, intel: der };
  if (product === undefined || issuer === undefined) throw new Error(`${id} names no product`);
  const its = issuer.endsWith("asvk.der") ? "asvk" : "ask";
  const roots = { ...of.amd[product], ark: der, [its]: readVectorFile(issuer) };
  return { ...of, amd: { ...of.amd, [product]: roots } };
}

export const evidenceOf = ({ evidence }: Vector): Buffer => readVectorFile(evidence);
