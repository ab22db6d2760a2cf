import { lines, type Markdown, md } from "../messages/text.ts";
import type { Appraisal } from "./appraise.ts";
import { attestationLine } from "./render-attestation.ts";

/** What a result says about attestation after a VM was started, restarted, resized or restored. */
export interface AfterChange {
  line: Markdown;
  /** The result is red, and the operators are mentioned: what runs now is not what policy allows. */
  isAlarm: boolean;
}

/**
 * Pass an appraisal made with `notBefore`, the moment of the change: a report from before proves nothing about what runs
 * now. A failure is an alarm; that nothing could be verified yet is said, and alarms nobody. Undefined when attestation
 * is not enabled for the VM.
 */
export function afterChange(
  vm: { attestation?: { enabled?: boolean } },
  appraisal: Appraisal,
): AfterChange | undefined {
  if (vm.attestation?.enabled !== true) return undefined;
  const line = attestationLine(appraisal);
  if (appraisal.verdict === "verified")
    return { line: md`Attested again: ${line}`, isAlarm: false };
  if (appraisal.verdict !== "failed") return { line: md`Attestation: ${line}`, isAlarm: false };
  const what =
    appraisal.measurement.matchesPin === false
      ? md`🔴 *The measurement no longer matches its pin.*`
      : md`🔴 *Attestation failed after this change.*`;
  const detail = appraisal.difference ?? appraisal.reasons.join("; ");
  return { line: lines(what, md`${detail}`), isAlarm: true };
}
