import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readPem } from "./pem.ts";

export const products = ["Milan", "Genoa", "Turin"] as const;
/** AMD's products by their root certificates. Bergamo and Siena use Genoa's. */
export type Product = (typeof products)[number];

/** The ASK signs VCEKs; the ASVK signs VLEKs. */
export type AmdRoots = Record<"ark" | "ask" | "asvk", Buffer>;

/**
 * The root certificates that a verification trusts, as DER. Nothing else is trusted: a root that
 * evidence or endorsements bring along must be byte for byte one of these.
 */
export interface TrustedRoots {
  intel: Buffer;
  amd: Readonly<Record<Product, AmdRoots>>;
}

/**
 * SHA-256 of each root. These lines decide who is trusted; the files only provide the bytes.
 * Intel SGX Root CA, 2018-05-21 to 2049-12-31:
 * https://certificates.trustedservices.intel.com/Intel_SGX_Provisioning_Certification_RootCA.cer
 * ARK, ASK, and ASVK: https://kdsintf.amd.com/vcek/v1/<product>/cert_chain, and vlek/v1 for the
 * ASVK.
 */
const fingerprints = {
  intel: { root: "44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3" },
  Milan: {
    ark: "69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd",
    ask: "67d303bd3905fd38db8b20e0793699870e7fa612eaad5dec358293fd8c0bac1b",
    asvk: "c5e081f59b7efab1fe2f8b505e159704e72f29cab7ef7cf628a05a42439082f5",
  },
  Genoa: {
    ark: "4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1",
    ask: "5464738c1546aed5f2cecf1dc98c5c960a92e8913238a61711bc90ec6e828521",
    asvk: "197e610743a917d6b9bb982a5a9226ccc0a15b611be0619e626aca9151457372",
  },
  Turin: {
    ark: "1f084161a44bb6d93778a904877d4819cafa5d05ef4193b2ded9dd9c73dd3f6a",
    ask: "5b77ef5fe7a7a004fd9032668fba9d0fda22f88c4442069a479636a6ae3b3185",
    asvk: "104e10a8bd060a3c20a434261a57d0588fd65a88915b4f65b08bdecaf8df1a3c",
  },
} as const;

/**
 * Reads the vendors' roots from the PEM files in a folder. Each is found by its fingerprint alone,
 * so anything else in a file is ignored. Throws when a root is missing or damaged, which shows at
 * the start of the program and not when evidence is judged.
 */
export function readRoots(folder: string): TrustedRoots {
  function pinned<Name extends string>(file: string, digests: Readonly<Record<Name, string>>) {
    const ders = readPem(readFileSync(join(folder, file), "latin1")) ?? [];
    const known = new Map(ders.map((der) => [hash("sha256", der), der]));
    const entries = Object.entries<string>(digests).map(([name, sha256]) => {
      const der = known.get(sha256);
      if (!der) throw new Error(`the root ${sha256} is missing or damaged in ${file}`);
      return [name, der] as const;
    });
    return Object.fromEntries(entries) as Record<Name, Buffer>;
  }
  const amd = {
    Milan: pinned("milan.pem", fingerprints.Milan),
    Genoa: pinned("genoa.pem", fingerprints.Genoa),
    Turin: pinned("turin.pem", fingerprints.Turin),
  };
  return { intel: pinned("intel.pem", fingerprints.intel).root, amd };
}

/** The trusted roots in production: the vendors' only. */
export const vendorRoots: TrustedRoots = readRoots(join(import.meta.dirname, "roots"));
