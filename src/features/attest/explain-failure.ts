import type { Fact, FactQuery, Way } from "../../core/facts/fact.ts";
import { deedWords } from "../../core/cards/deed-words.ts";
import { wayBack } from "../../core/cards/way-back.ts";
import { isAlready } from "../../core/request/stage.ts";
import { type StoredRequest, sentAtOf } from "../../core/request/stored-request.ts";
import { atTime, hintOf, md, name, timeNear } from "../../messages/markdown.ts";
import type { DriftRecord, Lack } from "../../monitor/drift-records.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { type Target, calledName, dottedName, isPin, runButton } from "../../registry/define.ts";
import { attestVm } from "./attest-button.ts";
import { type ImageChange, changesSince } from "./changes-since.ts";
import { pinsPropose } from "./pins-propose.ts";
import { untilWords } from "./lacking-words.ts";

/** What is known of a VM that fails attestation. */
interface Failure extends Pick<FactQuery, "commands" | "now"> {
  vm: Target;
  record: DriftRecord;
  /** Undefined where what came before the failure wasn't read. */
  known?: {
    /** The newest requests on it that the reader sees, newest first. */
    last: readonly StoredRequest[];
    /** When it last verified (ms); 0 for never. */
    verifiedAt: number;
    /** Its pin is in gatehouse.yml. */
    isInFile: boolean;
  };
}

/** The one failure of a VM, with the request behind it where exactly one can be. Pure. */
export function explainFailure({ vm, record, known, commands, now }: Failure): Fact {
  const { isPinnable = false, reason, since } = record;
  const fails = md`${name(calledName(vm))} has failed attestation since`;
  const fact = { kind: "attestation", about: vm, severity: "alarm", sign: "🔴", since } as const;
  const plainly = md`${fails} ${timeNear(since, now)}: ${reason}.`;
  const look = attestWay(vm, commands);
  if (!known) return { ...fact, text: plainly, ways: look };
  const { last, verifiedAt, isInFile } = known;
  const changes = changesSince(verifiedAt, last, commands);
  const change = changeBehind(record, changes);
  const ways = [
    ...(change ? waysBack(change) : []),
    ...(isPinnable ? [newPin(vm.id, isInFile)] : []),
  ];
  if (!change) {
    const verified = verifiedAt === 0 ? "" : md` since it last verified ${atTime(verifiedAt, now)}`;
    const detail =
      changes.length === 0
        ? md`Nobody changed it through Gatehouse${verified}.`
        : md`No single request to Gatehouse explains it${verified}.`;
    return { ...fact, text: plainly, detail, ways: [...look, ...containWays(vm), ...ways] };
  }
  const explained = { ...fact, request: change.request.record.id };
  const deed = deedWords(change.request, change.command, now);
  if (!isPinnable)
    return { ...explained, text: md`${fails} ${deed}: ${reason}.`, ways: [...ways, ...look] };
  const [changed, stayed] = isPin(change.command) ? ["pin", "measurement"] : ["measurement", "pin"];
  return {
    ...explained,
    text: md`${fails} ${deed}: its ${changed} changed, its ${stayed} didn't.`,
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
function containWays(vm: Target): Way[] {
  const evidence = { vm: vm.id, evidence: true };
  return [
    {
      command: "vm.attest",
      button: runButton("Evidence", "vm.attest:evidence", evidence, `of ${vm.name}`),
    },
    { command: "vm.stop", button: runButton("Stop", "vm.stop", { vms: [vm.id] }, vm.name) },
  ];
}

function attestWay(vm: Target, commands: FactQuery["commands"]): Way[] {
  const reader = commandWithRole(commands, "shows-evidence");
  return reader ? [{ command: dottedName(reader), button: attestVm(vm) }] : [];
}

/** Says what keeps a VM from being verified. */
export function explainLack(
  lack: Lack,
  { vm, commands, now }: Pick<Failure, "vm" | "commands" | "now">,
): Fact {
  return {
    kind: "unverified",
    about: vm,
    severity: "warning",
    sign: "❔",
    text: md`${name(calledName(vm))} has been unverifiable since ${timeNear(lack.since, now)}: ${lack.what}.`,
    detail: md`${untilWords(lack)}`,
    since: lack.since,
    next: hintOf(lack.way && `${lack.way}.`),
    ways: attestWay(vm, commands),
  };
}
