import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";

/** The client certificate that Gatehouse presents to a server that asks for one, in PEM. */
export interface ClientCertificate {
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** TLS settings for connections to the compute service, all in PEM. */
export interface ComputeTls extends ClientCertificate {
  /** Authorities to trust instead of the default ones and those of CA_FILE. */
  readonly ca: string | undefined;
}

/**
 * Parses each certificate of a PEM text; undefined stands for one that can't be parsed. TLS itself
 * silently skips those.
 */
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

export function areCertificates(pem: string): boolean {
  const all = certificatesIn(pem);
  return all.length > 0 && !all.includes(undefined);
}

export function isTakenByTls(options: SecureContextOptions): boolean {
  try {
    createSecureContext(options);
    return true;
  } catch {
    return false;
  }
}
