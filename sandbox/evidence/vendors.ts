import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pem } from "./der-writer.ts";
import type { Keys } from "./mint-certificates.ts";
import { type AmdKeys, mintSnp, type SnpChanges } from "./mint-snp.ts";
import { createIntelKeys, type IntelKeys, mintTdx, type TdxChanges } from "./mint-tdx.ts";
import { type AmdRoots, type Product, type TrustedRoots, vcekNamedBy } from "./trust.ts";

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

/** How evidence, and what vouches for it, differ from good ones. */
export interface Minted {
  on: Platform;
  snp?: SnpChanges;
  tdx?: TdxChanges;
  /** Of an Intel that nobody knows. */
  isStranger?: boolean;
  /** Signed by the wrong key. */
  isListForged?: boolean;
  /** Two days ago. */
  hasRunOut?: boolean;
  /** After it was signed. */
  tcbInfo?: (body: string) => string;
  /** Only the evidence is changed, nothing of what vouches for it. */
  isFolderClear?: boolean;
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

const strangeIntel = once(createIntelKeys);

/** All evidence and endorsements of a process carry this time, so what was minted is used again. */
const mintedAt = once(() => Math.floor(Date.now() / hourMs) * hourMs);

function amdRoots(product: Product): AmdRoots {
  const none = Buffer.alloc(0);
  const empty = { ark: none, ask: none, asvk: none };
  const roots = { intel: none, amd: { Milan: empty, Genoa: empty, Turin: empty } };
  return mintSnp(sandboxAmd(), mintedAt(), { product }).roots(roots).amd[product];
}

const rootsOf = {
  Milan: once(() => amdRoots("Milan")),
  Genoa: once(() => amdRoots("Genoa")),
  Turin: once(() => amdRoots("Turin")),
};

/** Whom a sandbox trusts instead of the vendors; production never does. Minted when first looked at: RSA takes its time. */
export const sandboxRoots: TrustedRoots = {
  get intel() {
    return read().intelRootCertificate;
  },
  amd: {
    get Milan() {
      return rootsOf.Milan();
    },
    get Genoa() {
      return rootsOf.Genoa();
    },
    get Turin() {
      return rootsOf.Turin();
    },
  },
};

const digest = (algorithm: "sha256" | "sha384" | "sha512", text: string) =>
  createHash(algorithm).update(text).digest();

/** The raw report of a VM, as its processor signs it. */
export function evidenceOf(
  { platform, measurement, hardware, boot, isDebug }: Machine,
  { snp, tdx, isStranger = false }: Omit<Minted, "on"> = {},
): Buffer {
  if (platform === "TDX")
    return mintTdx(isStranger ? strangeIntel() : sandboxIntel(), mintedAt(), {
      ...tdx,
      ...(isStranger ? {} : { rootCertificate: read().intelRootCertificate }),
      body(body) {
        body.write(measurement, 136, "hex");
        digest("sha384", hardware).copy(body, 328);
        digest("sha384", `loader of ${measurement}`).copy(body, 376);
        digest("sha384", `system of ${measurement}`).copy(body, 424);
        digest("sha512", boot).copy(body, 520);
        if (isDebug) body[120] = 1;
        tdx?.body?.(body);
      },
    }).quote;
  return mintSnp(sandboxAmd(), mintedAt(), {
    ...snp,
    product: platform,
    report(report) {
      digest("sha512", boot).copy(report, 0x50);
      report.write(measurement, 0x90, "hex");
      digest("sha256", boot).copy(report, 0x140);
      if (isDebug) report[0x0a] = (report[0x0a] ?? 0) | 0x08;
      snp?.report?.(report);
    },
  }).report;
}

/**
 * Fills a folder of endorsements for the machines of this process, as an operator of a verifier would with the vendors'.
 * The lists of those in `ranOut` ended two days ago; with `nextLevel` Intel will soon ask for more than its machines have;
 * `changed` is otherwise for its machines alone.
 */
export async function writeEndorsements(
  folder: string,
  {
    ranOut = [],
    nextLevel = false,
    changed,
  }: { ranOut?: readonly Platform[]; nextLevel?: boolean; changed?: Minted | undefined } = {},
): Promise<void> {
  const its = changed?.isFolderClear ? undefined : changed;
  const isOver = (platform: Platform) =>
    ranOut.includes(platform) || (its?.on === platform && its.hasRunOut === true);
  const ofIntel = its?.on === "TDX" ? its : undefined;
  const put = async (name: string, content: Buffer | string | undefined) => {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content ?? "");
  };
  const now = mintedAt();
  // From the same day as before, or it would be an older list than one that was seen
  const ended = { until: now - 2 * dayMs };
  const { endorsements: intel, certificates } = mintTdx(sandboxIntel(), now, {
    ...ofIntel?.tdx,
    rootCertificate: read().intelRootCertificate,
    fmspc,
    ...(isOver("TDX") ? { pckCrl: ended } : {}),
    ...(ofIntel?.isListForged ? { pckCrl: { signer: sandboxIntel().pck } } : {}),
  });
  await put("intel/root.crl", intel.rootCrl);
  await put("intel/pck-platform.crl", intel.pckCrl);
  await put("intel/pck-platform.pem", pem(certificates.ca, certificates.root));
  await put("intel/tdx-qe.json", intel.qeIdentity?.body);
  await put("intel/tdx-qe.pem", intel.qeIdentity?.chain);
  const tcbInfo = intel.tcbInfo?.body ?? "";
  await put(`intel/tcb/${fmspc}.json`, ofIntel?.tcbInfo?.(tcbInfo) ?? tcbInfo);
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
    const { report, endorsements } = mintSnp(sandboxAmd(), now, {
      ...(its?.on === product ? its.snp : {}),
      product,
      ...(isOver(product) ? { crl: ended } : {}),
    });
    const { chip, tcb } = vcekNamedBy(report);
    const hwid = product === "Turin" ? chip.slice(0, 16) : chip;
    // oxlint-disable-next-line no-await-in-loop -- three small files
    await put(`amd/${product}/vcek/${hwid}-${tcb}.der`, endorsements.vek);
    // oxlint-disable-next-line no-await-in-loop -- three small files
    await put(`amd/${product}/vcek.crl`, endorsements.crl);
  }
}
