import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../errors.ts";
import type { RedactedMarker } from "./markers.ts";
import { type Replacement, rewriteTrail } from "./rewrite.ts";
import { type TrailEntry, compareIds, isSealedBy, saltedHash } from "./seal.ts";
import type { Trail } from "./trail.ts";
import { recordPages, sealsOf } from "./walk.ts";

/** How many records one record vouches for, so that each stays readable in a terminal. */
const mostPerMarker = 500;
/** How long records may wait for their seals (ms). A gateway seals twice a second. */
const sealedWithinMs = 30_000;
const sealPauseMs = 200;
/** Records that come meanwhile may name the person, too. */
const mostPasses = 5;

/** Who removes a person from the trail, and what takes the place of each record. */
interface Redaction extends Pick<RedactedMarker, "who" | "why" | "person"> {
  /** Returns the text of a record without the person; the same text where it doesn't name them. */
  redact: (record: string) => string;
}

/**
 * Replaces the text of every record that names a person by what is left of it. The seals stay, so
 * the chain still verifies; records that say who did it, and why, vouch for what is left by its
 * salted hash. Either the whole trail is rewritten or nothing is, and a second run finishes.
 *
 * Throws a UserError when a record isn't what was sealed, when nobody seals, and when someone else
 * is erasing.
 */
export async function redactTrail(trail: Trail, redaction: Redaction): Promise<void> {
  for (let pass = 0; pass < mostPasses; pass += 1) {
    if (!(await areNamedSealed(trail, redaction))) return;
    await rewriteTrail(trail, {
      replace: (page) => leftOf(trail, page, redaction.redact),
      markers: (replaced) => markers(redaction, replaced),
    });
  }
  throw new UserError("New records keep naming this person", "run the command again later");
}

/** The ID of the newest record in which there is something to remove. */
export async function newestNaming(
  trail: Trail,
  redact: Redaction["redact"],
): Promise<string | undefined> {
  let newest: string | undefined;
  for await (const page of recordPages(trail, undefined))
    newest = page.findLast(({ record }) => redact(record) !== record)?.id ?? newest;
  return newest;
}

/** False when no record names the person. Waits until all that do are sealed. */
async function areNamedSealed(trail: Trail, { redact }: Redaction): Promise<boolean> {
  const newest = await newestNaming(trail, redact);
  if (newest === undefined) return false;
  const until = performance.now() + sealedWithinMs;
  for (;;) {
    const head = await trail.head();
    if (head && compareIds(head.id, newest) >= 0) return true;
    if (performance.now() > until)
      throw new UserError(
        "Records that name this person aren't sealed yet",
        "start a gateway, which seals them, and run the command again",
      );
    await sleep(sealPauseMs);
  }
}

type RedactedRecord = RedactedMarker["redacted"][number];

/** Returns the records of a page that name the person, without them and with new salts. */
async function leftOf(
  trail: Trail,
  page: readonly TrailEntry[],
  redact: Redaction["redact"],
): Promise<readonly Replacement<RedactedRecord>[]> {
  const named = page.filter(({ record }) => redact(record) !== record);
  const sealed = await sealsOf(
    trail,
    named.map(({ id }) => id),
  );
  return named.flatMap((entry) => {
    const { seal, salt: formerSalt } = sealed.get(entry.id) ?? {};
    // It came while the others were copied, so the next pass takes it.
    if (!seal) return [];
    // A record that was redacted before has no seal of its own text, and the trail was verified already.
    if (entry.salt === undefined && !isSealedBy(entry, seal, formerSalt))
      throw new UserError(`Audit record ${entry.id} is not what was sealed`, "run audit verify");
    const left = { record: redact(entry.record), salt: randomBytes(16).toString("hex") };
    const payload = saltedHash(left.salt, left.record);
    return [{ named: { seq: seal.seq, id: seal.id, payload }, left }];
  });
}

function markers(
  { who, why, person }: Redaction,
  redacted: readonly RedactedRecord[],
): readonly RedactedMarker[] {
  const count = Math.ceil(redacted.length / mostPerMarker);
  return Array.from({ length: count }, (_, index) => {
    const part = redacted.slice(index * mostPerMarker, (index + 1) * mostPerMarker);
    return { what: "audit-redacted", who, why, person, redacted: part };
  });
}
