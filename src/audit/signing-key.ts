import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
} from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { privateFile, privateFolder } from "../regular-file.ts";

export type SigningKey = ReturnType<typeof openSigningKey>;

/**
 * The key in `folder`/audit-key.pem. When it is missing, one is created that only its owner can
 * read. Throws file system errors, and throws when the file contains no key.
 */
export function openSigningKey(folder: string) {
  mkdirSync(folder, privateFolder);
  const file = path.join(folder, "audit-key.pem");
  if (!existsSync(file)) makeKey(file);
  const key = createPrivateKey(readFileSync(file, "utf8"));
  return {
    publicKey: createPublicKey(key).export({ type: "spki", format: "der" }).toString("base64"),
    sign: (text: string) => sign(null, Buffer.from(text), key).toString("base64"),
  };
}

/** Like `openSigningKey`, but never creates a key. */
export function findSigningKey(folder: string): SigningKey | undefined {
  return existsSync(path.join(folder, "audit-key.pem")) ? openSigningKey(folder) : undefined;
}

function makeKey(file: string): void {
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  // A process that is killed or has a full disk must not leave half a key, which nobody would
  // replace.
  const beside = `${file}.${randomUUID()}`;
  try {
    writeFileSync(beside, pem, { ...privateFile, flag: "wx", flush: true });
    try {
      linkSync(beside, file);
    } catch {
      // Another process that shares the folder was faster, or the folder doesn't support links.
      if (!existsSync(file)) renameSync(beside, file);
    }
  } finally {
    rmSync(beside, { force: true });
  }
}
