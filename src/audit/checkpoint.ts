import { z } from "zod";
import { isHash } from "./seal.ts";

/** A signed head. Somebody with write access to Redis but without the key can't forge one. */
export const checkpointShape = z.strictObject({
  seq: z.int().min(0),
  hash: z.string().refine(isHash),
  /** Redis time of the signature (ms). */
  at: z.number(),
  /** Ed25519, SPKI, base64. */
  publicKey: z.string(),
  /** The signature of `checkpointText`, base64. */
  signature: z.string(),
});
export type Checkpoint = z.infer<typeof checkpointShape>;

export const checkpointText = (
  chain: string,
  { seq, hash, at }: Omit<Checkpoint, "publicKey" | "signature">,
) => `gatehouse-audit-checkpoint ${chain} ${seq} ${hash} ${at}`;
