import { privateFile, privateFolder } from "../regular-file.ts";
import { parseJson } from "../text/parse-json.ts";
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { z } from "zod";
import { isHash } from "./chain.ts";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  verify,
} from "node:crypto";

/** A head of the chain kept outside Redis; the chain must still contain it. */
export interface Anchor {
  seq: number;
  hash: string;
  /** Redis time when it was anchored, ms. */
  at: number;
}

/**
 * The anchors on this process's disk: `audit-anchors.jsonl`, one per line, only ever appended to. `chain` keeps
 * installations that share a folder apart: the namespace. A line torn by a crash is skipped.
 */
export function openAnchors(folder: string, chain: string) {
  const file = path.join(folder, "audit-anchors.jsonl");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const all = text
    .split("\n")
    .map((line) => parseAnchor(line, chain))
    .filter((anchor) => anchor !== undefined);
  let isTorn = text !== "" && !text.endsWith("\n");

  return {
    all: all as readonly Anchor[],
    get last(): Anchor | undefined {
      return all.at(-1);
    },
    add(anchor: Anchor): void {
      mkdirSync(folder, privateFolder);
      const line = JSON.stringify({ chain, ...anchor });
      // opened for each line: other processes may share the file
      appendFileSync(file, `${isTorn ? "\n" : ""}${line}\n`, { ...privateFile, flush: true });
      isTorn = false;
      all.push(anchor);
    },
  };
}

const anchorLine = z.object({
  chain: z.string(),
  seq: z.int(),
  hash: z.string().refine(isHash),
  at: z.number(),
});

function parseAnchor(line: string, chain: string): Anchor | undefined {
  const parsed = anchorLine.safeParse(parseJson(line));
  if (!parsed.success || parsed.data.chain !== chain) return undefined;
  const { seq, hash, at } = parsed.data;
  return { seq, hash, at };
}

/** `120:9f86…` as it is posted to the channel; undefined when it isn't one. */
export function readAnchor(text: string): Anchor | undefined {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? [];
  return seq && hash ? { seq: Number(seq), hash, at: 0 } : undefined;
}

/** A signed head: without the key, write access to Redis can't forge one. */
export const checkpointShape = z.strictObject({
  seq: z.int().min(0),
  hash: z.string().refine(isHash),
  /** Redis time of the signature, ms. */
  at: z.number(),
  /** Ed25519, SPKI, base64. */
  publicKey: z.string(),
  /** Over `signedText`, base64. */
  signature: z.string(),
});
export type Checkpoint = z.infer<typeof checkpointShape>;

export type SigningKey = ReturnType<typeof openSigningKey>;

/**
 * The key in `folder`/audit-key.pem; created, readable by its owner only, when missing. Throws file system errors, and
 * when the file holds no key.
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

/** Never creates one. */
export function findSigningKey(folder: string): SigningKey | undefined {
  return existsSync(path.join(folder, "audit-key.pem")) ? openSigningKey(folder) : undefined;
}

function makeKey(file: string): void {
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  // Killed, or on a full disk, a process must not leave half a key that nobody replaces
  const beside = `${file}.${randomUUID()}`;
  try {
    writeFileSync(beside, pem, { ...privateFile, flag: "wx", flush: true });
    try {
      linkSync(beside, file);
    } catch {
      // Another process that shares the folder was faster, or the folder knows no links
      if (!existsSync(file)) renameSync(beside, file);
    }
  } finally {
    rmSync(beside, { force: true });
  }
}

/** The first 16 hex digits of SHA-256 over the public key, for people to compare. */
export function fingerprint(publicKey: string): string {
  return createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex").slice(0, 16);
}

export function signedText(chain: string, point: Pick<Checkpoint, "seq" | "hash" | "at">): string {
  return `gatehouse-audit-checkpoint ${chain} ${point.seq} ${point.hash} ${point.at}`;
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

/** Canonical base64 only: the last digit before `=` has bits that a decoder would ignore. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}
