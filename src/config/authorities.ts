import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { codeOf } from "../errors.ts";
import { certificatesIn } from "./compute-tls.ts";

/**
 * The authorities that Node.js trusts by default, including those of NODE_EXTRA_CA_CERTS as it was
 * set when the process began.
 */
let usual: readonly string[] | undefined;
let added: string | undefined;

/**
 * From now on, every new connection of this process trusts these authorities (PEM) in addition to
 * the default ones: connections to Slack, Redis, proxies, and vendors, and to the
 * compute service unless COMPUTE_CA_FILE names its own. This is needed because Node.js reads
 * NODE_EXTRA_CA_CERTS only from the environment that it is started in, so a variable of an
 * --env-file comes too late.
 */
export function trustAuthorities(pem: string | undefined): void {
  if (pem === added) return;
  usual ??= getCACertificates("default");
  const ours = certificatesIn(pem ?? "").filter((certificate) => certificate !== undefined);
  setDefaultCACertificates([...usual, ...ours.map(String)]);
  added = pem;
}

/**
 * The authorities that were added last. A TLS context that was created earlier still has the former
 * ones.
 */
export const addedAuthorities = (): string | undefined => added;

/**
 * The certificate's chain ends in an authority that isn't trusted here, or lacks a certificate on
 * the way to one.
 */
const unknownIssuer = [
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];
const wrongHost = ["ERR_TLS_CERT_ALTNAME_INVALID", "HOSTNAME_MISMATCH"];

/**
 * Why a server's certificate isn't accepted, derived from the error code of Node.js
 * (https://nodejs.org/api/tls.html#x509-certificate-error-codes).
 */
export type CertificateFlaw = "unknown-issuer" | "wrong-host" | "expired" | "not-yet" | "other";

const flaws: ReadonlyMap<string, CertificateFlaw> = new Map([
  ...unknownIssuer.map((code) => [code, "unknown-issuer"] as const),
  ...wrongHost.map((code) => [code, "wrong-host"] as const),
  ["CERT_HAS_EXPIRED", "expired"],
  ["CERT_NOT_YET_VALID", "not-yet"],
  ...[
    "CERT_CHAIN_TOO_LONG",
    "CERT_REJECTED",
    "CERT_REVOKED",
    "CERT_SIGNATURE_FAILURE",
    "INVALID_CA",
    "INVALID_PURPOSE",
    "PATH_LENGTH_EXCEEDED",
    "UNABLE_TO_DECRYPT_CERT_SIGNATURE",
  ].map((code) => [code, "other"] as const),
]);

/**
 * Undefined for codes that aren't about a certificate. After such an error nothing was sent on the
 * connection.
 */
export const certificateFlaw = (code: string): CertificateFlaw | undefined => flaws.get(code);

/**
 * The next step after a connection failed because of its certificate. Undefined when it failed for
 * another reason.
 */
export function certificateHint(error: unknown): string | undefined {
  const flaw = certificateFlaw(codeOf(error));
  if (flaw === undefined) return undefined;
  const doctor = "doctor names the certificate";
  if (flaw === "unknown-issuer")
    return `put the authority that issued its certificate into the file of CA_FILE; ${doctor}`;
  if (flaw === "wrong-host") return `use the name that its certificate has; ${doctor}`;
  if (flaw === "not-yet") return `check the clock of this machine; ${doctor}`;
  return `it needs a new certificate; ${doctor}`;
}
