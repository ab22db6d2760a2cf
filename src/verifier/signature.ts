import { constants, createPublicKey, hash, type KeyObject, verify } from "node:crypto";

/**
 * `node:crypto` throws for invalid keys and signatures. To a verifier a forged signature is an
 * expected input, so this file, and no other in the verifier, turns such errors into a negative
 * result.
 */
function orUndefined<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

/** The DER of a public key up to its point: algorithm, curve, uncompressed form. */
const p256 = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex");
const p384 = Buffer.from("3076301006072a8648ce3d020106052b8104002203620004", "hex");
const curves = { "P-256": { start: p256, size: 64 }, "P-384": { start: p384, size: 96 } } as const;

type KeyKind = keyof typeof curves | "RSA-4096";

/**
 * The key in a SubjectPublicKeyInfo, if it is of that kind: RSA with exponent 65537, or a named
 * curve with an uncompressed point.
 */
export function readKey(info: Buffer, kind: KeyKind): KeyObject | undefined {
  if (kind !== "RSA-4096") {
    const { start, size } = curves[kind];
    const isKind =
      info.length === start.length + size && info.subarray(0, start.length).equals(start);
    return isKind ? importKey(info) : undefined;
  }
  const key = importKey(info);
  const { modulusLength, publicExponent } = key?.asymmetricKeyDetails ?? {};
  const isKind =
    key?.asymmetricKeyType === "rsa" && modulusLength === 4096 && publicExponent === 65_537n;
  return isKind ? key : undefined;
}

const importKey = (info: Buffer): KeyObject | undefined =>
  orUndefined(() => createPublicKey({ key: info, format: "der", type: "spki" }));

/** The attestation key of a quote, given as x and y. */
export function pointKey(point: Buffer): KeyObject | undefined {
  return readKey(Buffer.concat([p256, point]), "P-256");
}

type Hash = "sha256" | "sha384";

const holds = (
  algorithm: Hash,
  signed: Buffer,
  key: Parameters<typeof verify>[2],
  signature: Buffer,
) => orUndefined(() => verify(algorithm, signed, key, signature)) ?? false;

/** Checks ECDSA with SHA-256 on P-256 as certificates encode it: a sequence of two integers. */
export function isSignedInDer(signed: Buffer, publicKey: Buffer, signature: Buffer): boolean {
  const key = readKey(publicKey, "P-256");
  return key !== undefined && holds("sha256", signed, { key, dsaEncoding: "der" }, signature);
}

/**
 * Checks ECDSA as quotes, reports, and Intel's JSON encode it: r and s, big-endian, one after the
 * other.
 */
export const isSignedRaw = (
  algorithm: Hash,
  signed: Buffer,
  key: KeyObject,
  signature: Buffer,
): boolean => holds(algorithm, signed, { key, dsaEncoding: "ieee-p1363" }, signature);

/**
 * Checks RSA-PSS as AMD uses it: a key of 4,096 bits, SHA-384 in both places, and a salt of 48
 * bytes.
 */
export function isSignedByPss(signed: Buffer, publicKey: Buffer, signature: Buffer): boolean {
  const key = readKey(publicKey, "RSA-4096");
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 };
  return key !== undefined && holds("sha384", signed, { key, ...pss }, signature);
}

export const sha256 = (...parts: readonly Buffer[]): Buffer =>
  hash("sha256", Buffer.concat(parts), "buffer");
