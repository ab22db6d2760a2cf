/**
 * The consequence of a problem for the evidence. `contradicts`: something in it is wrong, so it
 * fails. `missing`: something needed is absent, can't be read, or is outside of its validity, so
 * nothing is proven either way. `tampered`: it counts like missing, but the file can be read and
 * its vendor's signature doesn't hold, so somebody should investigate.
 */
export type Standing = "contradicts" | "missing" | "tampered";

type Says = (about: string) => string;
const contradicts = (sentence: Says) => ({ standing: "contradicts" as const, sentence });
const missing = (sentence: Says) => ({ standing: "missing" as const, sentence });
const tampered = (sentence: Says) => ({ standing: "tampered" as const, sentence });

const reasons = {
  clock: missing(() => "the clock of this machine is missing or wrong"),
  "evidence-missing": missing(() => "there is no raw report"),
  "evidence-encoding": missing(() => "the raw report is not base64 or hex"),
  "evidence-too-long": missing((about) => `the raw report is too long: ${about}`),
  "evidence-td-report": missing(
    () => "it is a TD report, which only its own processor can check; have a quote made of it",
  ),
  "evidence-unknown": missing(() => "the raw report is neither a TDX quote nor an SNP report"),

  "quote-truncated": missing((about) => `the quote is cut short: ${about}`),
  "quote-version": missing((about) => `quotes of version ${about} can't be verified`),
  "quote-key-type": missing((about) => `the quote's key type ${about} is unknown`),
  "quote-tee": missing((about) => `the quote is not of a TDX VM: type ${about}`),
  "quote-vendor": missing((about) => `the quote is not by Intel's quoting enclave: ${about}`),
  "quote-body": missing((about) => `the quote's body is of an unknown kind: ${about}`),
  "quote-layout": missing((about) => `the quote's parts don't add up: ${about}`),

  "report-truncated": missing((about) => `the report is cut short: ${about}`),
  "report-version": missing((about) => `reports of version ${about} can't be verified`),
  "report-algorithm": missing((about) => `the report's signature algorithm ${about} is unknown`),
  "report-signer": missing((about) => `the report's signing key ${about} is unknown`),
  "product-unknown": missing((about) => `the processor is of an unknown kind: ${about}`),
  "report-reserved": contradicts((about) => `the report has bytes where none may be: ${about}`),
  "report-policy": contradicts(() => "the report's policy lacks the bit that is always set"),
  "report-unsigned": contradicts(() => "the report says that no key signed it"),
  "report-signature": contradicts(() => "the report's signature does not hold"),

  "quote-signature": contradicts(() => "the quote's signature does not hold"),
  "qe-report-signature": contradicts(() => "the quoting enclave's signature does not hold"),
  "qe-report-data": contradicts(() => "the quoting enclave doesn't vouch for the quote's key"),
  "qe-identity": contradicts((about) => `the quoting enclave is not Intel's: ${about}`),
  "qe-debug": contradicts(() => "the quoting enclave runs with debugging on"),
  "pck-extension": contradicts((about) => `the PCK certificate doesn't say its ${about}`),
  "tdx-module": contradicts((about) => `the TDX module is not Intel's: ${about}`),
  "tcb-not-supported": contradicts((about) => `${about} is below every level that Intel supports`),
  "tcb-revoked": contradicts((about) => `Intel has revoked the level of ${about}`),
  "tcb-status-unknown": contradicts((about) => `Intel's status is an unknown word: ${about}`),

  "chain-malformed": contradicts((about) => `${about} is not a certificate`),
  "chain-length": contradicts((about) => `the chain has ${about} certificates`),
  "chain-root": contradicts((about) => `the chain of ${about} ends at no root that is trusted`),
  "chain-name": contradicts((about) => `${about} is not who should have signed or been signed`),
  "chain-not-ca": contradicts((about) => `the issuer of ${about} may not sign certificates`),
  "chain-algorithm": contradicts((about) => `${about} is signed in a way that the vendor isn't`),
  "chain-signature": contradicts((about) => `the signature on ${about} does not hold`),
  "chain-leaf": contradicts((about) => `${about} may not sign evidence`),
  revoked: contradicts((about) => `${about} is revoked`),
  "signer-kind": contradicts((about) => `the report is by another kind of key: ${about}`),
  product: contradicts((about) => `the processors don't agree: ${about}`),
  "vek-extension": contradicts((about) => `the chip's certificate doesn't say its ${about}`),
  "vcek-tcb": contradicts((about) => `the certificate is of other firmware: ${about}`),
  "vcek-hwid": contradicts(() => "the certificate is of another chip"),

  "cert-expired": missing((about) => `${about} has expired`),
  "cert-not-yet-valid": missing((about) => `${about} is not valid yet`),
  "vek-missing": missing((about) => `the chip's certificate is missing: ${about}`),
  "crl-missing": missing((about) => `${about} is missing`),
  "crl-expired": missing((about) => `${about} has expired`),
  "crl-not-yet-valid": missing((about) => `${about} is not valid yet`),
  "crl-superseded": missing((about) => `${about} is older than one that was seen before`),
  "crl-malformed": missing((about) => `${about} can't be read`),
  "crl-issuer": tampered((about) => `${about} is another issuer's`),
  "crl-signature": tampered((about) => `the signature on ${about} does not hold`),
  "collateral-missing": missing((about) => `${about} is missing`),
  "collateral-expired": missing((about) => `${about} has expired`),
  "collateral-not-yet-valid": missing((about) => `${about} is not valid yet`),
  "collateral-superseded": missing((about) => `${about} is older than one that was seen before`),
  "collateral-malformed": missing((about) => `${about} can't be read`),
  "collateral-chain": tampered((about) => `${about} is not signed by Intel's TCB signer`),
  "collateral-signature": tampered((about) => `the signature on ${about} does not hold`),
  "collateral-kind": missing((about) => `the collateral is of another kind: ${about}`),
  fmspc: missing((about) => `Intel's TCB info is of another platform: ${about}`),
  pceid: missing((about) => `Intel's TCB info is of another PCE: ${about}`),
} as const;

/** A part of the platform that is older than it should be. */
export interface Shortfall {
  /** The vendor's name for it: `SGX Late Microcode Update`. */
  part: string;
  has: number;
  needs: number;
  /** When the vendor set that level. A minimum in the policy has no date. */
  since?: string;
  /** The component that updates it: `TDX module`, `BIOS`. */
  by: string;
}

const level = ({ needs, since }: Shortfall) =>
  `${needs}${since === undefined ? "" : ` as of ${since.slice(0, 10)}`}`;

/** `TDX Module 6 as of 2024-11-13`. The text is equal for all VMs that need the same update. */
export const neededWords = (shortfall: Shortfall): string =>
  `${shortfall.part} ${level(shortfall)}`;

/**
 * Says what to update, and why: `update the TDX module (TDX Module 5, needs 6 as of 2024-11-13)`.
 */
export const updateWords = (short: readonly Shortfall[]): string =>
  [...Map.groupBy(short, ({ by: updateTarget }) => updateTarget)]
    .map(([updateTarget, parts]) => {
      const why = parts.map(
        (shortfall) => `${shortfall.part} ${shortfall.has}, needs ${level(shortfall)}`,
      );
      return `update the ${updateTarget} (${why.join("; ")})`;
    })
    .join(", ");

export type Reason = keyof typeof reasons;

export interface Problem {
  reason: Reason;
  /** The subject of the problem, as it appears in the sentence. */
  about: string;
  /** For a level that is refused: the parts whose update would fix it. */
  short?: readonly Shortfall[] | undefined;
}

export const problem = (reason: Reason, about = ""): Problem => ({ reason, about });

export const allReasons = Object.keys(reasons) as readonly Reason[];

export const standingOf = ({ reason }: Problem): Standing => reasons[reason].standing;

/** Without a full stop. */
export const sentenceOf = ({ reason, about, short = [] }: Problem): string =>
  `${reasons[reason].sentence(about)}${short.length > 0 ? `: ${updateWords(short)}` : ""}`;
