import { constants, type KeyObject, sign } from "node:crypto";
import { bits, distinguished, extension, integer, sequence, time, tlv, yes } from "./der-writer.ts";

export interface Keys {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

/** How a vendor signs. */
export interface Signing {
  algorithm: Buffer;
  sign(bytes: Buffer, key: KeyObject): Buffer;
}

export const ecdsaSigning: Signing = {
  algorithm: Buffer.from("300a06082a8648ce3d040302", "hex"),
  sign: (bytes, key) => sign("sha256", bytes, key),
};

export const pssSigning: Signing = {
  algorithm: Buffer.from(
    "304106092a864886f70d01010a3034a00f300d06096086480165030402020500a11c301a06092a864886f70d010108300d06096086480165030402020500a203020130",
    "hex",
  ),
  sign: (bytes, key) =>
    sign("sha384", bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 }),
};

export interface CertificateFields {
  subject: string;
  issuer: string;
  keys: Keys;
  signer: Keys;
  signing: Signing;
  serial: number;
  from: number;
  until: number;
  /** What its name stands under; another one makes another name with the same common name. */
  organization?: string;
  issuerOrganization?: string;
  ca?: { pathLength?: number; isCa?: boolean; usage?: number } | undefined;
  extensions?: readonly Buffer[];
  /** The algorithm that is named inside, where it is not the one outside. */
  inner?: Buffer;
}

/** keyCertSign and cRLSign. */
const caUsage = 0x06;

export function mintCertificate(fields: CertificateFields): Buffer {
  const { subject, issuer, keys, signer, signing, serial, from, until, ca, inner } = fields;
  const { pathLength, isCa = true, usage = caUsage } = ca ?? {};
  const basic = sequence(
    ...(isCa ? [yes] : []),
    ...(isCa && pathLength !== undefined ? [integer(pathLength)] : []),
  );
  const extensions = [
    ...(ca
      ? [
          extension("2.5.29.19", basic, true),
          extension("2.5.29.15", tlv(0x03, Buffer.from([1, usage])), true),
        ]
      : []),
    ...(fields.extensions ?? []),
  ];
  const tbs = sequence(
    tlv(0xa0, integer(2)),
    integer(serial),
    inner ?? signing.algorithm,
    distinguished(issuer, fields.issuerOrganization),
    sequence(time(from), time(until)),
    distinguished(subject, fields.organization),
    keys.publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(...extensions)),
  );
  return sequence(tbs, signing.algorithm, bits(signing.sign(tbs, signer.privateKey)));
}

export interface ListFields {
  issuer: string;
  signer: Keys;
  signing: Signing;
  from: number;
  until: number | undefined;
  serials?: readonly number[];
  organization?: string;
  /** The list's number, 7 without it; 0: none. */
  number?: number;
  /** More of the list's extensions. */
  extensions?: readonly Buffer[];
}

export function mintList(fields: ListFields): Buffer {
  const {
    issuer,
    signer,
    signing,
    from,
    until,
    serials = [],
    number = 7,
    extensions = [],
  } = fields;
  const entries = serials.map((serial) => sequence(integer(serial), time(from)));
  const tbs = sequence(
    integer(1),
    signing.algorithm,
    distinguished(issuer, fields.organization),
    time(from),
    ...(until === undefined ? [] : [time(until)]),
    ...(entries.length > 0 ? [sequence(...entries)] : []),
    tlv(
      0xa0,
      sequence(...(number > 0 ? [extension("2.5.29.20", integer(number))] : []), ...extensions),
    ),
  );
  return sequence(tbs, signing.algorithm, bits(signing.sign(tbs, signer.privateKey)));
}
