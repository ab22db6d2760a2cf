import type { Appraiser } from "../../attestation/appraiser.ts";
import { deadlineSignal } from "../../deadline.ts";
import { deedWords } from "../../core/cards/deed-words.ts";
import { wayBack } from "../../core/cards/way-back.ts";
import { isAlready } from "../../core/request/stage.ts";
import { sentAtOf } from "../../core/request/stored-request.ts";
import { hintOf, md, name, atTime, timeNear } from "../../messages/markdown.ts";
import { type DriftRecord, type Lack, isMissing } from "../../monitor/drift-records.ts";
import { dottedName, evidenceReader, isPin, runButton } from "../../registry/define.ts";
import type { AskedAbout, Cause, Explains, Way } from "../cause.ts";
import { attestVm } from "./attest-button.ts";
import { type ImageChange, changesSince } from "./changes-since.ts";
import { pinsPropose } from "./pins-propose.ts";
import { untilWords } from "./lacking-words.ts";

/** How long an answer waits for the evidence of its VM (ms). */
const readWithinMs = 5_000;

/**
 * Says why a VM fails attestation or can't be verified. The evidence of a pinned VM is appraised
 * anew, which also puts its result on record; where it can't be read now, the last one counts.
 */
export const explainAttestation =
  (on: {
    records: { readRecords(ids: readonly string[]): Promise<ReadonlyMap<string, DriftRecord>> };
    appraiser: Pick<Appraiser, "attest" | "lastVerified" | "pinsOf">;
  }): Explains =>
  async (asked) => {
    const { vm } = asked;
    const { from } = await on.appraiser.pinsOf(vm);
    const signal = deadlineSignal(readWithinMs);
    const read =
      from === "nowhere"
        ? undefined
        : await on.appraiser.attest(vm, { signal }).catch(() => undefined);
    const record = (await on.records.readRecords([vm.id])).get(vm.id);
    const unverified = (record?.lacks ?? [])
      .filter(isMissing)
      .map((lack) => explainLack(lack, asked));
    if (record === undefined || record.mark === "") {
      const isVerified = read?.appraisal.verdict === "verified" && unverified.length === 0;
      const text = md`its attestation was just verified`;
      return isVerified ? [{ place: "well", sign: "🟢", text }] : unverified;
    }
    const verifiedAt = (await on.appraiser.lastVerified(vm.id)) ?? 0;
    return [explainFailure(record, { ...asked, verifiedAt, isInFile: from === "gatehouse.yml" })];
  };

interface Known extends AskedAbout {
  /** When it last verified (ms); 0 for never. */
  verifiedAt: number;
  /** Its pin is in gatehouse.yml. */
  isInFile: boolean;
}

/** The one failure of a VM, with the request behind it where exactly one can be. Pure. */
export function explainFailure(record: DriftRecord, known: Known): Cause {
  const { vm, last, reading, verifiedAt, isInFile } = known;
  const { isPinnable = false, reason, since } = record;
  const now = reading.now();
  const changes = changesSince(verifiedAt, last, reading.commands);
  const change = changeBehind(record, changes);
  const called = name(vm.name);
  const cause = { place: "attestation", sign: "🔴" } as const;
  const ways = [
    ...(change ? waysBack(change) : []),
    ...(isPinnable ? [newPin(vm.id, isInFile)] : []),
  ];
  if (!change) {
    const verified = verifiedAt === 0 ? "" : md` since it last verified ${atTime(verifiedAt, now)}`;
    const explained =
      changes.length === 0
        ? md`Nobody changed it through Gatehouse${verified}.`
        : md`No single request to Gatehouse explains it${verified}.`;
    const text = md`${called} has failed attestation since ${timeNear(since, now)}: ${reason}. ${explained}`;
    return { ...cause, text, ways: [...attestWay(known), ...containWays(known), ...ways] };
  }
  const look: Way[] = isPinnable ? [] : attestWay(known);
  const deed = deedWords(change.request, change.command, now);
  if (!isPinnable)
    return {
      ...cause,
      text: md`${called} has failed attestation since ${deed}: ${reason}.`,
      ways: [...ways, ...look],
    };
  const [changed, stayed] = isPin(change.command) ? ["pin", "measurement"] : ["measurement", "pin"];
  return {
    ...cause,
    text: md`${called} fails attestation because ${deed}: its ${changed} changed, its ${stayed} didn't.`,
    ways,
  };
}

/**
 * The only change that can be behind the failure. Where the pin alone doesn't match, that is one
 * that can change what the VM measures, or its pin; a restart can't.
 */
function changeBehind(
  { isPinnable = false, since }: DriftRecord,
  changes: readonly ImageChange[],
): ImageChange | undefined {
  const [only, ...others] = changes.filter(
    ({ request, command }) =>
      request.state === "done" &&
      !isAlready(request.stage) &&
      sentAtOf(request) <= since &&
      (isPinnable ? isPin(command) || (command.on === "vm" && command.back) : !isPin(command)),
  );
  return others.length === 0 ? only : undefined;
}

function waysBack({ request, command }: ImageChange): Way[] {
  const button = wayBack(request, command);
  return button ? [{ command: dottedName(command), button }] : [];
}

/** The value for gatehouse.yml is shown by the answer to *Attest*, freshly read. */
function newPin(vmId: string, isInFile: boolean): Way {
  if (isInFile)
    return {
      command: "vm.attest",
      button: runButton("Copy the new pin", "vm.attest:pin", { vm: vmId }),
    };
  const command = dottedName(pinsPropose);
  return { command, button: runButton("Pin what it measures now", command, { vm: vmId }) };
}

/** What to keep, and what to end, where nobody knows who changed the VM. */
function containWays({ vm }: Pick<AskedAbout, "vm">): Way[] {
  const evidence = { vm: vm.id, evidence: true };
  return [
    {
      command: "vm.attest",
      button: runButton("Evidence", "vm.attest:evidence", evidence, `of ${vm.name}`),
    },
    { command: "vm.stop", button: runButton("Stop", "vm.stop", { vms: [vm.id] }, vm.name) },
  ];
}

function attestWay({ vm, reading }: Pick<AskedAbout, "vm" | "reading">): Way[] {
  const reader = evidenceReader(reading.commands);
  return reader ? [{ command: dottedName(reader), button: attestVm(vm) }] : [];
}

function explainLack(lack: Lack, { vm, reading }: AskedAbout): Cause {
  const since = timeNear(lack.since, reading.now());
  return {
    place: "unverified",
    sign: "❔",
    text: md`${name(vm.name)} has been unverifiable since ${since}: ${lack.what}. ${untilWords(lack)}`,
    next: hintOf(lack.way && `${lack.way}.`),
    ways: attestWay({ vm, reading }),
  };
}
