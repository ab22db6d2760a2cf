import { createHash } from "node:crypto";
import type { Appraisal } from "../attestation/appraise.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import type { DriftRecord } from "./drift-records.ts";

/** What is told, and under which id: the same news has the same id, so it is told once. */
export type News = { is: "failed" | "recovered"; id: string };

/**
 * What a new appraisal makes of what was known: a failure is news when it is the first or another one, a verification after
 * a failure is news too. That nothing could be verified is no news: it neither ends a failure nor makes one. Pure.
 */
export function judgeDrift(
  before: DriftRecord | undefined,
  vm: Pick<KnownVm, "id" | "name" | "projectName">,
  appraisal: Pick<Appraisal, "verdict" | "reasons" | "measurement">,
  now: number,
): { record: DriftRecord; news?: News } | undefined {
  const { verdict, reasons, measurement } = appraisal;
  if (verdict === "could not verify") return undefined;
  const mark = verdict === "failed" ? markOf([...reasons, measurement.report ?? ""]) : "";
  const episode = before?.episode ?? 0;
  const shared = {
    vmId: vm.id,
    vmName: vm.name,
    projectName: vm.projectName,
    reason: reasons[0] ?? "",
  };
  if (before && before.verdict === verdict && before.mark === mark)
    return { record: { ...before, ...shared } };
  if (verdict === "failed") {
    const record: DriftRecord = { ...shared, verdict, mark, since: now, episode };
    return { record, news: { is: "failed", id: `drift-${vm.id}-${episode}-${mark}` } };
  }
  if (before?.verdict !== "failed")
    return { record: { ...shared, verdict, mark, since: now, episode } };
  return {
    record: { ...shared, verdict, mark, since: now, episode: episode + 1, recoveredAt: now },
    news: { is: "recovered", id: `drift-${vm.id}-${episode}-over` },
  };
}

function markOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 16);
}
