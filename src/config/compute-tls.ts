import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Environment } from "./environment.ts";

/** For connections to the compute service, all in PEM. */
export interface ComputeTls {
  /** Authorities to trust instead of the system's. */
  readonly ca: string | undefined;
  /** Shown to the service, with its key. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

const anyPem = /^-----BEGIN [A-Z0-9 ]+-----$/m;

/** Reads the three files and checks that they fit together. */
export function computeTls(from: Environment): ComputeTls {
  const pem = (name: string, what: string) => {
    const text = from.content(name);
    if (text !== undefined)
      from.check(name, text, anyPem, `must name a file with ${what} in PEM (-----BEGIN …)`);
    return text;
  };
  const ca = pem("COMPUTE_CA_FILE", "the certificates of authorities");
  const cert = pem("COMPUTE_CLIENT_CERT_FILE", "a certificate and those that signed it");
  const key = pem("COMPUTE_CLIENT_KEY_FILE", "a private key");
  const [has, lacks] = cert === undefined ? ["KEY", "CERT"] : ["CERT", "KEY"];
  const isMentioned = (which: string) => from.text(`COMPUTE_CLIENT_${which}_FILE`) !== undefined;
  if (isMentioned(has) && !isMentioned(lacks))
    from.problem(
      `COMPUTE_CLIENT_${lacks}_FILE`,
      `is missing, and COMPUTE_CLIENT_${has}_FILE is set`,
    );
  const problem = tlsProblem({ ca, cert, key });
  if (problem !== undefined && from.problems.length === 0) from.problem(...problem);
  const now = (name: string, first: string | undefined) =>
    first === undefined ? undefined : from.now(name, first);
  return {
    get ca() {
      return now("COMPUTE_CA_FILE", ca);
    },
    get cert() {
      return now("COMPUTE_CLIENT_CERT_FILE", cert);
    },
    get key() {
      return now("COMPUTE_CLIENT_KEY_FILE", key);
    },
  };
}

/** The variable, and what TLS would not take of it. */
function tlsProblem({ ca, cert, key }: ComputeTls): readonly [string, string] | undefined {
  const unreadable = "has a certificate that can't be read, or none";
  if (ca !== undefined && !isAll(certificatesIn(ca))) return ["COMPUTE_CA_FILE", unreadable];
  if (cert !== undefined && !isAll(certificatesIn(cert)))
    return ["COMPUTE_CLIENT_CERT_FILE", unreadable];
  if (key !== undefined && !isTaken({ key }))
    return ["COMPUTE_CLIENT_KEY_FILE", "has no private key that can be read without a passphrase"];
  if (cert !== undefined && key !== undefined && !isTaken({ cert, key }))
    return ["COMPUTE_CLIENT_KEY_FILE", "is not the key of COMPUTE_CLIENT_CERT_FILE"];
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
