import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { AmdRoots, Product, TrustedRoots } from "../../src/verifier/roots.ts";
import { readReport } from "../../src/verifier/snp/report.ts";
import { pem } from "./der-writer.ts";
import type { Keys } from "./mint-certificates.ts";
import { type AmdKeys, mintSnp } from "./mint-snp.ts";
import { createIntelKeys, type IntelKeys, mintTdx } from "./mint-tdx.ts";

export type Platform = Product | "TDX";

/** A VM as its processor sees it. */
export interface Machine {
  platform: Platform;
  /** MEASUREMENT or MRTD: 48 bytes in hex. */
  measurement: string;
  /** CPUs and memory, which TDX measures into RTMR0. */
  hardware: string;
  /** Another one for each boot. */
  boot: string;
  isDebug: boolean;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const fmspc = "00a06f000000";

function once<T>(make: () => T): () => T {
  let made: { it: T } | undefined;
  return () => (made ??= { it: make() }).it;
}

const read = once(() => {
  const file = readFileSync(path.join(import.meta.dirname, "minting-keys.pem"), "utf8");
  const keys = [...file.matchAll(/-----BEGIN PRIVATE[^]*?-----END PRIVATE KEY-----/g)].map(
    ([text]): Keys => {
      const privateKey = createPrivateKey(text);
      return { privateKey, publicKey: createPublicKey(privateKey) };
    },
  );
  const [, base64 = ""] = /BEGIN CERTIFICATE-----([^-]*)/.exec(file) ?? [];
  const [ark, ask, intelRoot] = keys;
  if (!ark || !ask || !intelRoot) throw new Error("minting-keys.pem has not three keys");
  return { ark, ask, intelRoot, intelRootCertificate: Buffer.from(base64, "base64") };
});

/** The AMD of the sandbox. Another process has the same roots, and chips of its own. */
export const sandboxAmd = once((): AmdKeys => {
  const { ark, ask } = read();
  return { ark, ask, vek: generateKeyPairSync("ec", { namedCurve: "P-384" }) };
});

const sandboxIntel = once((): IntelKeys => ({ ...createIntelKeys(), root: read().intelRoot }));

/** Of when all of a process's evidence and endorsements are: what is minted once is used again. */
const mintedAt = once(() => Math.floor(Date.now() / hourMs) * hourMs);

function amdRoots(product: Product): AmdRoots {
  const none = Buffer.alloc(0);
  const empty = { ark: none, ask: none, asvk: none };
  const roots = { intel: none, amd: { Milan: empty, Genoa: empty, Turin: empty } };
  return mintSnp(sandboxAmd(), mintedAt(), { product }).roots(roots).amd[product];
}

const [milan, genoa, turin] = (["Milan", "Genoa", "Turin"] as const).map((product) =>
  once(() => amdRoots(product)),
);

/** Whom a sandbox trusts instead of the vendors; production never does. Minted when first looked at: RSA takes its time. */
export const sandboxRoots: TrustedRoots = {
  get intel() {
    return read().intelRootCertificate;
  },
  amd: {
    get Milan() {
      return milan?.() ?? amdRoots("Milan");
    },
    get Genoa() {
      return genoa?.() ?? amdRoots("Genoa");
    },
    get Turin() {
      return turin?.() ?? amdRoots("Turin");
    },
  },
};

const digest = (algorithm: "sha256" | "sha384" | "sha512", text: string) =>
  createHash(algorithm).update(text).digest();

/** The raw report of a VM, as its processor signs it. */
export function evidenceOf({ platform, measurement, hardware, boot, isDebug }: Machine): Buffer {
  if (platform === "TDX")
    return mintTdx(sandboxIntel(), mintedAt(), {
      rootCertificate: read().intelRootCertificate,
      body(body) {
        body.write(measurement, 136, "hex");
        digest("sha384", hardware).copy(body, 328);
        digest("sha384", `loader of ${measurement}`).copy(body, 376);
        digest("sha384", `system of ${measurement}`).copy(body, 424);
        digest("sha512", boot).copy(body, 520);
        if (isDebug) body[120] = 1;
      },
    }).quote;
  return mintSnp(sandboxAmd(), mintedAt(), {
    product: platform,
    report(report) {
      digest("sha512", boot).copy(report, 0x50);
      report.write(measurement, 0x90, "hex");
      digest("sha256", boot).copy(report, 0x140);
      if (isDebug) report[0x0a] = (report[0x0a] ?? 0) | 0x08;
    },
  }).report;
}

/**
 * Fills a folder of endorsements for the machines of this process, as an operator would with the vendors' (`docs/attestation.md`).
 * The lists of those in `ranOut` ended two days ago; with `nextLevel` Intel will soon ask for more than its machines have.
 */
export async function writeEndorsements(
  folder: string,
  { ranOut = [], nextLevel = false }: { ranOut?: readonly Platform[]; nextLevel?: boolean } = {},
): Promise<void> {
  const put = async (name: string, content: Buffer | string | undefined) => {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content ?? "");
  };
  const now = mintedAt();
  const ended = { from: now - 40 * dayMs, until: now - 2 * dayMs };
  const { endorsements: intel, certificates } = mintTdx(sandboxIntel(), now, {
    rootCertificate: read().intelRootCertificate,
    fmspc,
    ...(ranOut.includes("TDX") ? { pckCrl: ended } : {}),
  });
  await put("intel/root.crl", intel.rootCrl);
  await put("intel/pck-platform.crl", intel.pckCrl);
  await put("intel/pck-platform.pem", pem(certificates.ca, certificates.root));
  await put("intel/tdx-qe.json", intel.qeIdentity?.body);
  await put("intel/tdx-qe.pem", intel.qeIdentity?.chain);
  await put(`intel/tcb/${fmspc}.json`, intel.tcbInfo?.body);
  await put(`intel/tcb/${fmspc}.pem`, intel.tcbInfo?.chain);
  if (nextLevel) {
    const { endorsements: next } = mintTdx(sandboxIntel(), now, {
      rootCertificate: read().intelRootCertificate,
      tcbInfo(info) {
        info.tcbEvaluationDataNumber = 19;
        for (const level of info.tcbLevels) level.tcbStatus = "OutOfDate";
      },
    });
    await put(`intel/tcb/${fmspc}.early.json`, next.tcbInfo?.body);
    await put(`intel/tcb/${fmspc}.early.pem`, next.tcbInfo?.chain);
  }
  for (const product of ["Genoa", "Turin", "Milan"] as const) {
    const crl = ranOut.includes(product) ? ended : undefined;
    const { report, endorsements } = mintSnp(sandboxAmd(), now, {
      product,
      ...(crl ? { crl } : {}),
    });
    const its = readReport(report);
    if ("reason" in its) throw new Error(`no report: ${its.reason}`);
    const { chipId, reportedTcb } = its.facts;
    const hwid = product === "Turin" ? chipId.slice(0, 16) : chipId;
    // oxlint-disable-next-line no-await-in-loop -- three small files
    await put(`amd/${product}/vcek/${hwid}-${reportedTcb}.der`, endorsements.vek);
    // oxlint-disable-next-line no-await-in-loop -- three small files
    await put(`amd/${product}/vcek.crl`, endorsements.crl);
  }
}
