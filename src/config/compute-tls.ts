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
  const takes = (options: SecureContextOptions) => {
    try {
      createSecureContext(options);
      return true;
    } catch {
      return false;
    }
  };
  if (ca !== undefined && !takes({ ca }))
    return ["COMPUTE_CA_FILE", "has no certificate that can be read"];
  if (cert !== undefined && !takes({ cert }))
    return ["COMPUTE_CLIENT_CERT_FILE", "has no certificate that can be read"];
  if (key !== undefined && !takes({ key }))
    return ["COMPUTE_CLIENT_KEY_FILE", "has no private key that can be read without a passphrase"];
  if (cert !== undefined && key !== undefined && !takes({ cert, key }))
    return ["COMPUTE_CLIENT_KEY_FILE", "is not the key of COMPUTE_CLIENT_CERT_FILE"];
  return undefined;
}
