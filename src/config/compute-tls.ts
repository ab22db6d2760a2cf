import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";

/** For connections to the compute service, all in PEM. */
export interface ComputeTls {
  /** Authorities to trust instead of the system's. */
  readonly ca: string | undefined;
  /** Shown to the service, with its key. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** What TLS would not take of the three, with the variable that it is about. */
export function tlsProblem({ ca, cert, key }: ComputeTls): string | undefined {
  const unreadable = "has a certificate that can't be read, or none";
  if (ca !== undefined && !isAll(certificatesIn(ca))) return `COMPUTE_CA_FILE: ${unreadable}`;
  if (cert !== undefined && !isAll(certificatesIn(cert)))
    return `COMPUTE_CLIENT_CERT_FILE: ${unreadable}`;
  if (key !== undefined && !isTaken({ key }))
    return "COMPUTE_CLIENT_KEY_FILE: has no private key that can be read without a passphrase";
  if (cert !== undefined && key !== undefined && !isTaken({ cert, key }))
    return "COMPUTE_CLIENT_KEY_FILE: is not the key of COMPUTE_CLIENT_CERT_FILE";
  return undefined;
}

/** Each certificate of a text in PEM; undefined for what is none. TLS itself passes over those that it can't read. */
export function certificatesIn(pem: string): readonly (X509Certificate | undefined)[] {
  const blocks = pem.match(/-----BEGIN ([A-Z ]*CERTIFICATE)-----[^]*?-----END \1-----/g) ?? [];
  return blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch {
      return undefined;
    }
  });
}

function isAll(certificates: readonly unknown[]): boolean {
  return certificates.length > 0 && certificates.every((one) => one !== undefined);
}

function isTaken(options: SecureContextOptions): boolean {
  try {
    createSecureContext(options);
    return true;
  } catch {
    return false;
  }
}
