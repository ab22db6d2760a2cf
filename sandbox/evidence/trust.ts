/** Whose root keys sign for a processor of AMD's. Bergamo and Siena are Genoa's. */
export type Product = "Milan" | "Genoa" | "Turin";

/** The ASK signs VCEKs, the ASVK VLEKs. As DER. */
export type AmdRoots = Record<"ark" | "ask" | "asvk", Buffer>;

/** Whom a verifier must trust to take the sandbox's evidence, as DER. */
export interface TrustedRoots {
  intel: Buffer;
  amd: Readonly<Record<Product, AmdRoots>>;
}

/** What vouches for a report of SEV-SNP beside AMD's roots. */
export interface AmdEndorsements {
  /** The VCEK or VLEK, DER. */
  vek?: Buffer | undefined;
  /** The product's list of revoked certificates, DER. */
  crl?: Buffer | undefined;
}

/** An answer as Intel's service gives it, and the chain of its header, as PEM. */
export interface SignedAnswer {
  body: string;
  chain: string;
}

/** What vouches for a quote of TDX beside Intel's root. */
export interface IntelEndorsements {
  tcbInfo?: SignedAnswer | undefined;
  qeIdentity?: SignedAnswer | undefined;
  /** The PCK certificates that are revoked, DER. */
  pckCrl?: Buffer | undefined;
  /** The CAs and TCB signers that are revoked, DER. */
  rootCrl?: Buffer | undefined;
}

/** What an ATTESTATION_REPORT says that names its VCEK: the chip, and the level of its firmware, both in hex. */
export const vcekNamedBy = (report: Buffer): { chip: string; tcb: string } => ({
  chip: report.toString("hex", 0x1a0, 0x1e0),
  tcb: report.toString("hex", 0x180, 0x188),
});
