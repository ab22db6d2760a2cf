import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type AmdKeys, mintSnp, type SnpChanges } from "../../sandbox/evidence/mint-snp.ts";
import {
  createIntelKeys,
  type IntelKeys,
  mintTdx,
  type TdxChanges,
} from "../../sandbox/evidence/mint-tdx.ts";
import type * as appraising from "../../src/verifier/appraise-evidence.ts";
import { type AppraisalPolicy, strictPolicy } from "../../src/verifier/appraisal-policy.ts";
import { type TrustedRoots, vendorRoots } from "../../src/verifier/roots.ts";
import type * as results from "../../src/verifier/attestation-result.ts";
import type * as verifying from "../../src/verifier/verify-evidence.ts";
import { endorsementsOf, evidenceOf, vectorOf } from "./vectors.ts";

/** What is tried: the verifier as it is, or one with a check taken away. */
export type Verifier = Pick<typeof verifying, "verifyEvidence" | "verifyEncoded" | "Newest"> &
  Pick<typeof appraising, "appraiseEvidence">;

export interface Case {
  /** The row of the table of required results, where it is one of its 42. */
  row?: number;
  name: string;
  verdict: results.AttestationResult["verdict"];
  /** The reason that must be among those given. */
  code?: string;
  isAlarm?: boolean;
  /** What one of the reasons, or of the notes, must have in it. */
  says?: string;
  note?: string;
  judge(verifier: Verifier): results.AttestationResult;
}

type Intel = NonNullable<verifying.Endorsements["intel"]>;
type Amd = NonNullable<verifying.Endorsements["amd"]>;

interface Otherwise {
  evidence?: (bytes: Buffer) => Buffer;
  /** What the compute service gives instead of base64 of it. */
  encoded?: (bytes: Buffer) => string | undefined;
  now?: number;
  roots?: TrustedRoots;
  policy?: Partial<AppraisalPolicy>;
  references?: results.AppraisalOptions["references"];
  context?: results.Context;
  newest?: verifying.Newest;
}

export const mintedAt = Date.parse("2026-06-01T00:00:00Z");
export const dayMs = 86_400_000;

/** Minted evidence measures this: MRTD or MEASUREMENT, and RTMR0 to RTMR2. */
const measurement = "ab".repeat(48);
export const mintedTuple = [
  measurement,
  ...["b0", "b1", "b2"].map((each) => each.repeat(48)),
].join();

export interface Mints {
  amd: AmdKeys;
  intel: IntelKeys;
}

/** The RSA keys are made beforehand, see there. */
export function createMints(): Mints {
  const text = readFileSync(
    join(import.meta.dirname, "../../sandbox/evidence/minting-keys.pem"),
    "utf8",
  );
  const [ark, ask] = [...text.matchAll(/-----BEGIN[^]*?-----END PRIVATE KEY-----/g)].map(
    ([pem]) => {
      const privateKey = createPrivateKey(pem);
      return { privateKey, publicKey: createPublicKey(privateKey) };
    },
  );
  if (!ark || !ask) throw new Error("minting-keys.pem has not two keys");
  const vek = generateKeyPairSync("ec", { namedCurve: "P-384" });
  return { amd: { ark, ask, vek }, intel: createIntelKeys() };
}

/** Ways to have something judged, each good but for what is named. */
export function createJudging(mints: Mints) {
  const judge = (
    verifier: Verifier,
    bytes: Buffer,
    endorsements: verifying.Endorsements,
    otherwise: Required<Pick<Otherwise, "now" | "roots" | "references">> & Otherwise,
  ) => {
    const { now, roots, references, policy, context, encoded, newest } = otherwise;
    const evidence = otherwise.evidence?.(bytes) ?? bytes;
    const options = { now, roots, newest };
    return verifier.appraiseEvidence(
      encoded
        ? verifier.verifyEncoded(encoded(evidence), endorsements, options)
        : verifier.verifyEvidence(evidence, endorsements, options),
      {
        policy: { ...strictPolicy, ...policy },
        references,
        now,
        ...(context === undefined ? {} : { context }),
      },
    );
  };
  return {
    /** Evidence alone, and all that vouches for it. */
    minted: {
      tdx(changes: TdxChanges) {
        const { quote, endorsements: intel, roots } = mintTdx(mints.intel, mintedAt, changes);
        const endorsements: verifying.Endorsements = { intel };
        return { bytes: quote, endorsements, roots: roots(vendorRoots) };
      },
      snp(changes: SnpChanges) {
        const { report, endorsements: amd, roots } = mintSnp(mints.amd, mintedAt, changes);
        const endorsements: verifying.Endorsements = { amd };
        return { bytes: report, endorsements, roots: roots(vendorRoots) };
      },
    },
    tdx:
      (changes: TdxChanges, otherwise: Otherwise & { intel?: (all: Intel) => Intel } = {}) =>
      (verifier: Verifier) => {
        const minted = mintTdx(mints.intel, mintedAt, changes);
        const intel = otherwise.intel?.(minted.endorsements) ?? minted.endorsements;
        return judge(
          verifier,
          minted.quote,
          { intel },
          {
            now: mintedAt,
            roots: minted.roots(vendorRoots),
            references: [mintedTuple],
            ...otherwise,
          },
        );
      },
    /** What vouches for the second was seen after what vouches for the first. */
    tdxAfter: (before: TdxChanges, changes: TdxChanges) => (verifier: Verifier) => {
      const first = mintTdx(mints.intel, mintedAt, before);
      const rootCertificate = first.certificates.root;
      const second = mintTdx(mints.intel, mintedAt, { ...changes, rootCertificate });
      const newest = new verifier.Newest();
      const roots = first.roots(vendorRoots);
      const options = { now: mintedAt, roots, references: [mintedTuple], newest };
      judge(verifier, first.quote, { intel: first.endorsements }, options);
      return judge(verifier, second.quote, { intel: second.endorsements }, options);
    },
    snpAfter: (before: SnpChanges, changes: SnpChanges) => (verifier: Verifier) => {
      const [first, second] = [before, changes].map((each) => mintSnp(mints.amd, mintedAt, each));
      if (!first || !second) throw new Error("two were asked for");
      const roots = first.roots(vendorRoots);
      const newest = new verifier.Newest();
      const options = { now: mintedAt, roots, references: [measurement], newest };
      judge(verifier, first.report, { amd: first.endorsements }, options);
      return judge(verifier, second.report, { amd: second.endorsements }, options);
    },
    snp:
      (changes: SnpChanges, otherwise: Otherwise & { amd?: (all: Amd) => Amd } = {}) =>
      (verifier: Verifier) => {
        const minted = mintSnp(mints.amd, mintedAt, changes);
        const amd = otherwise.amd?.(minted.endorsements) ?? minted.endorsements;
        return judge(
          verifier,
          minted.report,
          { amd },
          {
            now: mintedAt,
            roots: minted.roots(vendorRoots),
            references: [measurement],
            ...otherwise,
          },
        );
      },
    genuine:
      (
        id: string,
        otherwise: Otherwise & {
          endorsements?: (all: verifying.Endorsements) => verifying.Endorsements;
        } = {},
      ) =>
      (verifier: Verifier) => {
        const vector = vectorOf(id);
        const endorsements =
          otherwise.endorsements?.(endorsementsOf(vector)) ?? endorsementsOf(vector);
        const {
          mrTd,
          measurement: its,
          rtmr,
        } = (vector.parsed ?? {}) as {
          mrTd?: string;
          measurement?: string;
          rtmr?: string[];
        };
        const own = its ?? [mrTd, ...(rtmr ?? []).slice(0, 3)].join();
        return judge(verifier, evidenceOf(vector), endorsements, {
          now: Date.parse(vector.at),
          roots: vendorRoots,
          references: [own],
          ...otherwise,
        });
      },
  };
}

/** One bit of it turned over. */
export const flipped =
  (at: number, bit = 0) =>
  (bytes: Buffer): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ (1 << bit);
    return copy;
  };

/** What isn't as the case says. */
export function complaintsOf(one: Case, verifier: Verifier): readonly string[] {
  const { verdict, code, says, note } = one;
  const result = one.judge(verifier);
  const { reasons, notes } = result;
  const isSo: [string, boolean][] = [
    [`${result.verdict}, not ${verdict}`, result.verdict === verdict],
    [`no ${code}`, code === undefined || reasons.some((reason) => reason.code === code)],
    [
      `nothing of ${says}`,
      says === undefined || reasons.some((reason) => reason.says.includes(says)),
    ],
    [`alarm: ${result.isAlarm}`, result.isAlarm === (one.isAlarm ?? false)],
    [`no note "${note}"`, note === undefined || notes.some((said) => said.includes(note))],
    ["no reason", reasons.length > 0],
  ];
  const given = reasons.map((reason) => reason.code).join(", ");
  return isSo.flatMap(([complaint, holds]) => (holds ? [] : [`${complaint} (${given})`]));
}
