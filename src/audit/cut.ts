import { z } from "zod";
import { defineRecord } from "../redis/define-record.ts";
import { type Seal, genesis, isHash, isStreamId } from "./seal.ts";

/**
 * The end of what was archived and cut off: the trail begins after this seal. It is signed with
 * another text than a checkpoint, so that no signed head can be passed off as a cut.
 */
export const cutShape = z.strictObject({
  seq: z.int().min(1),
  hash: z.string().refine(isHash),
  /** The ID of the seal's record. */
  id: z.string().refine(isStreamId),
  /** Redis time of the cut (ms). */
  at: z.number(),
  /** Ed25519, SPKI, base64. */
  publicKey: z.string(),
  signature: z.string(),
});
export type Cut = z.infer<typeof cutShape>;

export const cutRecord = defineRecord({ name: "cut of the audit trail", schema: cutShape });

export const cutText = (
  chain: string,
  { seq, hash, id, at }: Omit<Cut, "publicKey" | "signature">,
) => `gatehouse-audit-archived ${chain} ${seq} ${hash} ${id} ${at}`;

/** The seal that the first one follows. */
export const startOf = (cut: Cut | undefined): Pick<Seal, "seq" | "hash"> => ({
  seq: cut?.seq ?? 0,
  hash: cut?.hash ?? genesis,
});
