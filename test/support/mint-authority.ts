import { generateKeyPairSync } from "node:crypto";
import { extension, pem, sequence, tlv } from "../../sandbox/evidence/der-writer.ts";
import { ecdsaSigning, mintCertificate } from "../../sandbox/evidence/mint-certificates.ts";

const dayMs = 86_400_000;

export interface MintedCertificate {
  /** The certificate, and what signed it below the authority. */
  cert: string;
  key: string;
}

export interface MintOptions {
  /** Names and IPv4 addresses that it is for. */
  hosts?: readonly string[];
  /** Since and until when, in days from now. */
  fromDays?: number;
  untilDays?: number;
}

/** An authority as a company has one of its own. */
export interface Authority {
  name: string;
  /** In PEM. */
  certificate: string;
  mint(subject: string, options?: MintOptions): MintedCertificate;
}

const makeKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });

export function mintAuthority(name: string): Authority {
  const own = makeKeys();
  const now = Date.now();
  const common = { issuer: name, signer: own, signing: ecdsaSigning };
  const root = mintCertificate({
    ...common,
    subject: name,
    keys: own,
    serial: 1,
    from: now - 1000 * dayMs,
    until: now + 1000 * dayMs,
    ca: {},
  });
  let serial = 1;
  return {
    name,
    certificate: pem(root),
    mint(subject, { hosts = [], fromDays = -30, untilDays = 300 } = {}) {
      const keys = makeKeys();
      const der = mintCertificate({
        ...common,
        subject,
        keys,
        serial: ++serial,
        from: now + fromDays * dayMs,
        until: now + untilDays * dayMs,
        extensions: hosts.length === 0 ? [] : [alternativeNames(hosts)],
      });
      return { cert: pem(der), key: keys.privateKey.export({ type: "pkcs8", format: "pem" }) };
    },
  };
}

/** subjectAltName (RFC 5280, section 4.2.1.6). */
function alternativeNames(hosts: readonly string[]): Buffer {
  const names = hosts.map((host) =>
    /^[\d.]+$/.test(host)
      ? tlv(0x87, Buffer.from(host.split(".").map(Number)))
      : tlv(0x82, Buffer.from(host)),
  );
  return extension("2.5.29.17", sequence(...names));
}
