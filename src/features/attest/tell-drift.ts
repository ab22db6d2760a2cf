import { md, dayAndTime, timeNear } from "../../messages/markdown.ts";
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
import { attestFirst, attestVm } from "./attest-button.ts";

/**
 * The lines of digests about pinned VMs that fail attestation, and about what keeps VMs from being
 * verified now or soon.
 */
export const driftInDigests = (
  records: Pick<ReturnType<typeof createDriftRecords>, "readRecords">,
): DigestPart => ({
  name: "attestation",
  tellsFacts: ["attestation", "unverified"],
  async read({ vms, now }) {
    const known = [...(await records.readRecords(vms.map(({ id }) => id))).values()];
    return driftPart(
      known.toSorted((a, b) => a.since - b.since),
      now,
    );
  },
});

/** Lines for these records. */
export function driftPart(records: readonly DriftRecord[], now: number): ReadPart {
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
        lines: driftLines(records, now),
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

function driftLines(records: readonly DriftRecord[], now: number): Line[] {
  return records
    .filter(({ mark }) => mark !== "")
    .map(({ vm, since, reason, mark }) => ({
      key: `${vm.id}:${mark}:${since}`,
      text: md`🔴 *${vm.name}* in ${vm.projectName}: attestation has failed since ${timeNear(since, now)}: ${reason}.`,
      button: attestVm(vm),
    }));
}

/**
 * Lines about what is missing or will expire. Each warning stage has its own key, so a snoozed line
 * comes back at the next stage.
 */
function unverifiedLines(records: readonly DriftRecord[], now: number): Line[] {
  return [...lackingIn(records).values()].map((lacking) => {
    const { what: reason, endsAt, since, isNextLevel, vms } = lacking;
    const daysLeft = endsAt === undefined ? 0 : (endsAt - now) / dayMs;
    const stage = warnDays.filter((days) => daysLeft <= days).length;
    const text = isNextLevel
      ? md`⏳ Once Intel's next level counts, ${vmsOf(lacking)} will fail (${vmNamesIn(lacking)}): ${reason}.`
      : endsAt === undefined
        ? md`❔ ${vmsOf(lacking)} unverifiable since ${timeNear(since, now)} (${vmNamesIn(lacking)}): ${reason}.`
        : md`⏳ ${reason} expires ${dayAndTime(endsAt)}; after that, ${vmsOf(lacking)} can't be verified (${vmNamesIn(lacking)}).`;
    const key = `${reason}:${endsAt ?? since}:${stage}`;
    return { key, text, button: attestFirst(vms) };
  });
}
