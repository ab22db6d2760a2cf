import { md, name, dayAndTime, atTime, timeNear } from "../../messages/markdown.ts";
import {
  createDriftRecords,
  type DriftRecord,
  dayMs,
  lackingIn,
  warnDays,
  vmsOf,
  vmNamesIn,
} from "../../monitor/drift-records.ts";
import type { DigestPart, ReadPart, Line } from "../digest-part.ts";
import type { HomePart } from "../home-part.ts";
import { attestFirst, attestVm } from "./attest-button.ts";

/**
 * The lines of digests about pinned VMs that fail or failed attestation, and about what keeps VMs
 * from being verified now or soon.
 */
export const driftInDigests = (
  records: Pick<ReturnType<typeof createDriftRecords>, "readRecords">,
): DigestPart => ({
  name: "attestation",
  async read({ vms, since, now }) {
    const known = [...(await records.readRecords(vms.map(({ id }) => id))).values()];
    return driftPart(
      known.toSorted((a, b) => a.since - b.since),
      { since, now },
    );
  },
});

/** Lines for these records. Recoveries after `since` are reported (ms). */
export function driftPart(
  records: readonly DriftRecord[],
  { since, now }: { since: number; now: number },
): ReadPart {
  const red = records.flatMap(({ vm, mark, reason }) =>
    mark === "" ? [] : [[vm.id, reason] as const],
  );
  return {
    red: new Map(red),
    all: [
      {
        kind: "drift",
        place: "trouble",
        words: ["failed attestation", "failed attestations"],
        lines: driftLines(records, { since, now }),
      },
      {
        kind: "unverified",
        place: "trouble",
        words: ["reason why VMs can't be verified", "reasons why VMs can't be verified"],
        lines: unverifiedLines(records, now),
      },
    ],
  };
}

/** Failures, and those that ended since the last digest (`by.since`). */
function driftLines(records: readonly DriftRecord[], by: { since: number; now: number }): Line[] {
  return records.flatMap(({ vm, since, reason, mark, recoveredAt = 0 }) => {
    const what = md`*${vm.name}* in ${vm.projectName}: attestation`;
    const line = { key: `${vm.id}:${mark}:${since}`, button: attestVm(vm) };
    if (mark !== "")
      return [
        { ...line, text: md`🔴 ${what} has failed since ${timeNear(since, by.now)}: ${reason}.` },
      ];
    if (recoveredAt <= by.since) return [];
    return [{ ...line, text: md`🟢 ${what} had failed; resolved ${atTime(recoveredAt, by.now)}.` }];
  });
}

/**
 * Lines about what is missing or will expire. Each warning stage has its own key, so a snoozed line
 * comes back at the next stage.
 */
function unverifiedLines(records: readonly DriftRecord[], now: number): Line[] {
  return [...lackingIn(records).values()].map((lacking) => {
    const { what, endsAt, since, isNextLevel, vms } = lacking;
    const daysLeft = endsAt === undefined ? 0 : (endsAt - now) / dayMs;
    const stage = warnDays.filter((days) => daysLeft <= days).length;
    const text = isNextLevel
      ? md`⏳ Once Intel's next level counts, ${vmsOf(lacking)} will fail (${vmNamesIn(lacking)}): ${what}.`
      : endsAt === undefined
        ? md`❔ ${vmsOf(lacking)} unverifiable since ${timeNear(since, now)} (${vmNamesIn(lacking)}): ${what}.`
        : md`⏳ ${what} expires ${dayAndTime(endsAt)}; after that, ${vmsOf(lacking)} can't be verified (${vmNamesIn(lacking)}).`;
    const key = `${what}:${endsAt ?? since}:${stage}`;
    return { key, text, button: attestFirst(vms) };
  });
}

/** VMs that can't be verified now, under the problems of the Home tab. */
export const unverifiedAtHome =
  (records: Pick<ReturnType<typeof createDriftRecords>, "readRecords">): HomePart =>
  async ({ vms }) => {
    const known = await records
      .readRecords(vms.map(({ id }) => id))
      .catch(() => new Map<string, DriftRecord>());
    const problems = vms.flatMap((vm) => {
      const { mark = "", lacks = [] } = known.get(vm.id) ?? {};
      const lack = lacks.find(({ endsAt, isNextLevel }) => endsAt === undefined && !isNextLevel);
      if (mark !== "" || !lack) return [];
      const text = md`❔ ${name(vm.name)} in ${vm.projectName} can't be verified: ${lack.what}.`;
      return [{ text, button: attestVm(vm) }];
    });
    return { problems };
  };
