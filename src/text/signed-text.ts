import { createPublicKey, hash, verify } from "node:crypto";

/** SHA-256 of a public key (SPKI, base64), in hex. */
export const keyDigest = (publicKey: string): string =>
  hash("sha256", Buffer.from(publicKey, "base64"));

/** The first 16 hex digits of a key's digest, for people to compare. */
export const fingerprint = (publicKey: string): string => keyDigest(publicKey).slice(0, 16);

/**
 * Whether `signature` is a valid Ed25519 signature of `text`. False for anything else, including a
 * broken key. The key (SPKI) and the signature are base64.
 */
export function isSignature(text: string, publicKey: string, signature: string): boolean {
  const der = fromBase64(publicKey);
  const bytes = fromBase64(signature);
  if (!der || !bytes) return false;
  try {
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    return verify(null, Buffer.from(text), key, bytes);
  } catch {
    return false;
  }
}

/**
 * Accepts canonical base64 only, because the last digit before `=` has bits that a decoder would
 * ignore.
 */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}
