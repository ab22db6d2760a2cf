import { isAttestedAfter } from "../../core/deliver/after-result.ts";
import { type Markdown, md, when } from "../../messages/markdown.ts";
import { type DriftRecord, type DriftRecords, isMissing } from "../../monitor/drift-records.ts";
import type { ConcernPart } from "../concern-part.ts";

/**
 * The pinned VMs that fail attestation, or can't be verified now. A rollout that boots them would
 * stop there.
 */
export const attestationConcerns = (records: Pick<DriftRecords, "readRecords">): ConcernPart => ({
  name: "what fails attestation",
  async read({ command, targets }) {
    const known = await records.readRecords(targets.map(({ id }) => id));
    const effect = isAttestedAfter(command) ? "halts" : "note";
    return targets.flatMap((target) => {
      const record = known.get(target.id);
      const why = record && failureOf(record);
      return why ? [{ target, why, effect }] : [];
    });
  },
});

function failureOf({ mark, reason, since, lacks }: DriftRecord): Markdown | undefined {
  if (mark !== "")
    return md`has failed attestation since ${when(since, "{date_short_pretty} {time}")}: ${reason}`;
  const missing = lacks.find(isMissing);
  return missing && md`can't be verified: ${missing.what}`;
}
