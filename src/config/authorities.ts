import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { codeOf } from "../errors.ts";
import { certificatesIn } from "./compute-tls.ts";

/** What Node.js trusts by itself, with what NODE_EXTRA_CA_CERTS named when the process began. */
let usual: readonly string[] | undefined;
let added: string | undefined;

/**
 * From now on every new connection of this process trusts these authorities (PEM) beside the usual ones: to Slack, Redis, proxies,
 * vendors, and a collector, and to the compute service unless COMPUTE_CA_FILE names its own. Node.js reads NODE_EXTRA_CA_CERTS only
 * from the environment it is started in, which is too early for a variable of an --env-file.
 */
export function trustAuthorities(pem: string | undefined): void {
  if (pem === added) return;
  usual ??= getCACertificates("default");
  const ours = certificatesIn(pem ?? "").filter((one) => one !== undefined);
  setDefaultCACertificates([...usual, ...ours.map(String)]);
  added = pem;
}

/** What was added last: a TLS context that was made before has the former ones. */
export const addedAuthorities = (): string | undefined => added;

/** A chain that ends in an authority which isn't known here, or that lacks a certificate on the way to it. */
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
 * Why a server's certificate isn't accepted, by the code that Node.js gives (https://nodejs.org/api/tls.html#x509-certificate-error-codes).
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

/** Undefined for every other code. Whatever was to be sent on such a connection stayed here. */
export const certificateFlaw = (code: string): CertificateFlaw | undefined => flaws.get(code);

/** What to do about a connection that failed with this error, where its certificate was the reason. */
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
