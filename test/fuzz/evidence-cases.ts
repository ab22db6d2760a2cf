import * as fc from "fast-check";
import type { Endorsements } from "../../src/verifier/verify-evidence.ts";
import { endorsementsOf, evidenceOf, type Vector, vectors } from "../verifier/vectors.ts";

export interface EvidenceCase {
  kind: string;
  vector: Vector;
  bytes: Buffer;
  endorsements: Endorsements;
}

const authentic = vectors.filter(({ expect }) => expect.result === "authentic");
const anyVector = fc.constantFrom(...authentic);
const others = vectors.map((vector) => evidenceOf(vector));

/** Changes that leave no byte of what counts as it was: never a bit in padding, nor one that spells the same text. */
const spoiled = (bytes: Buffer, end: number) =>
  fc
    .array(fc.tuple(fc.nat(end - 1), fc.integer({ min: 1, max: 255 })), {
      minLength: 1,
      maxLength: 8,
    })
    .map((changes) => {
      const copy = Buffer.from(bytes);
      for (const [at, mask] of new Map(changes)) copy[at] = (copy[at] ?? 0) ^ mask;
      return copy;
    });

const spliced = (bytes: Buffer) =>
  fc
    .tuple(fc.constantFrom(...others), fc.nat(700), fc.integer({ min: 8, max: 700 }))
    .map(([other, at, length]) => {
      const copy = Buffer.from(bytes);
      other.copy(copy, at, at, Math.min(at + length, other.length));
      return copy;
    })
    .filter((copy) => !copy.equals(bytes));

/** Where a quote and a report name lengths, versions, and kinds. */
const frames = {
  tdx: [0, 2, 4, 48, 50, 632, 764, 766, 1218, 1252],
  snp: [0, 2, 8, 0x30, 0x34, 0x48, 0x180, 0x188, 0x1a0],
};

const reframed = (tee: Vector["tee"], bytes: Buffer) =>
  fc.tuple(fc.constantFrom(...frames[tee]), fc.nat(0xffff)).map(([at, value]) => {
    const copy = Buffer.from(bytes);
    copy.writeUInt16LE(copy.readUInt16LE(at) === value ? value ^ 1 : value, at);
    return copy;
  });

const endOf = ({ parsed }: Vector, bytes: Buffer) =>
  bytes.length - Number(parsed?.["trailingBytes"] ?? 0);

const changedEvidence = anyVector.chain((vector) => {
  const bytes = evidenceOf(vector);
  const end = vector.tee === "snp" ? 1184 : endOf(vector, bytes);
  const signed = vector.tee === "snp" ? end : 632;
  return fc
    .oneof(
      fc.tuple(fc.constant("bytes changed"), spoiled(bytes, signed)),
      fc.tuple(
        fc.constant("cut"),
        fc.nat(end - 1).map((length) => bytes.subarray(0, length)),
      ),
      fc.tuple(fc.constant("spliced"), spliced(bytes)),
      fc.tuple(fc.constant("reframed"), reframed(vector.tee, bytes)),
    )
    .map(([kind, changed]) => ({
      kind,
      vector,
      bytes: changed,
      endorsements: endorsementsOf(vector),
    }));
});

const madeUp = fc
  .tuple(
    anyVector,
    fc.uint8Array({ maxLength: 6000 }),
    fc.constantFrom("", "04000200810000000000", "05000000"),
  )
  .map(([vector, noise, start]) => ({
    kind: "made up",
    vector,
    bytes: Buffer.concat([Buffer.from(start, "hex"), noise]),
    endorsements: endorsementsOf(vector),
  }));

/** Where the endorsements are changed, the evidence is genuine. */
const changedEndorsements = anyVector.chain((vector) => {
  const good = endorsementsOf(vector);
  const { amd, intel } = good;
  const noise = fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes));
  const changed = (bytes: Buffer | undefined) =>
    bytes === undefined ? noise : fc.oneof(spoiled(bytes, bytes.length), noise);
  const text = (body: string) =>
    fc.nat(body.length - 1).map((at) => `${body.slice(0, at)}~${body.slice(at + 1)}`);
  const all: fc.Arbitrary<Endorsements> = intel
    ? fc.oneof(
        changed(intel.pckCrl).map((pckCrl) => ({ intel: { ...intel, pckCrl } })),
        changed(intel.rootCrl).map((rootCrl) => ({ intel: { ...intel, rootCrl } })),
        text(intel.tcbInfo?.body ?? " ").map((body) => ({
          intel: { ...intel, tcbInfo: { body, chain: intel.tcbInfo?.chain ?? "" } },
        })),
        text(intel.qeIdentity?.chain ?? " ").map((chain) => ({
          intel: { ...intel, qeIdentity: { body: intel.qeIdentity?.body ?? "", chain } },
        })),
      )
    : fc.oneof(
        changed(amd?.vek).map((vek) => ({ amd: { ...amd, vek } })),
        changed(amd?.crl).map((crl) => ({ amd: { ...amd, crl } })),
      );
  return all.map((endorsements) => ({
    kind: "endorsements changed",
    vector,
    bytes: evidenceOf(vector),
    endorsements,
  }));
});

export const anyEvidence: fc.Arbitrary<EvidenceCase> = fc.oneof(
  { arbitrary: changedEvidence, weight: 5 },
  { arbitrary: changedEndorsements, weight: 3 },
  { arbitrary: madeUp, weight: 2 },
);
