import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** A head of the chain, signed: who can write to Redis but doesn't have the key can't make one. */
export interface Checkpoint {
  seq: number;
  hash: string;
  /** Redis time of the signature, ms. */
  at: number;
  /** Ed25519, SPKI, base64. */
  publicKey: string;
  /** Over `signedText`, base64. */
  signature: string;
}

export interface SigningKey {
  publicKey: string;
  sign(text: string): string;
}

/**
 * The key in `folder`/audit-key.pem; made, readable by its owner only, when there is none. Throws what the file system
 * says, and when the file holds no key.
 */
export function openSigningKey(folder: string): SigningKey {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "audit-key.pem");
  if (!existsSync(file)) makeKey(file);
  return signingKey(createPrivateKey(readFileSync(file, "utf8")));
}

/** The same, but never made: undefined when there is none. */
export function findSigningKey(folder: string): SigningKey | undefined {
  return existsSync(path.join(folder, "audit-key.pem")) ? openSigningKey(folder) : undefined;
}

function makeKey(file: string): void {
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  try {
    writeFileSync(file, pem, { mode: 0o600, flag: "wx" });
  } catch (error) {
    // another process that shares the folder was faster
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function signingKey(key: KeyObject): SigningKey {
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" }).toString("base64");
  return { publicKey, sign: (text) => sign(null, Buffer.from(text), key).toString("base64") };
}

/** The first 16 hex digits of SHA-256 over the public key: what people compare. */
export function fingerprint(publicKey: string): string {
  return createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex").slice(0, 16);
}

export function signedText(chain: string, point: Pick<Checkpoint, "seq" | "hash" | "at">): string {
  return `gatehouse-audit-checkpoint ${chain} ${point.seq} ${point.hash} ${point.at}`;
}

export function isSignedRightly(chain: string, point: Checkpoint): boolean {
  return isSignature(signedText(chain, point), point.publicKey, point.signature);
}

/** False for anything that isn't a valid signature, a broken key included. */
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

/** Only the one right spelling: the last digit before `=` has bits that a decoder would ignore. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}
