import { statusFacts, type Vm } from "../../fleet/compute/compute.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { type ChangeCommand, type Command, type Target } from "../../registry/define.ts";
import { isList } from "../request/seen.ts";
import { type StoredRequest, sentAtOf } from "../request/stored-request.ts";
import { afterChange, type AfterNote } from "../../attestation/render-attestation.ts";
import type { Appraisal } from "../../attestation/appraise.ts";
import type { Appraiser } from "../../attestation/appraiser.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { Markdown, md, name } from "../../messages/markdown.ts";
import type { Policy } from "../../config/policy-file.ts";
import { ownerOf } from "../permit/refusal.ts";
import { rightsOver } from "../permit/access.ts";
import { mentions } from "../cards/render-result.ts";
import { afterOf, beforeOf, callOf, isAlready } from "../request/stage.ts";

/**
 * Notes in the inventory what the end of a request showed, so that it is known before the service
 * is read again. Idempotent. Call it only for a request that has just ended, because an older read
 * may no longer be true.
 */
export async function noteOutcome(
  { record, stage, state }: StoredRequest,
  command: ChangeCommand,
  inventory: Inventory,
): Promise<void> {
  const after = afterOf(stage);
  // No other end has a read of the target.
  if (state !== "done" && state !== "failed") return;
  if (after === undefined) {
    if (state === "done" && command.on === "project" && command.deletes)
      await inventory.note({ goneProjectId: record.target.id });
    return;
  }
  for (const seen of isList(after) ? after : [after])
    await inventory.note("projectId" in seen ? { vm: seen } : { project: seen });
}

/** Whether the VM boots in this change, so that an attestation from before says nothing. */
export function isAttestedAfter(command: ChangeCommand): boolean {
  return command.on === "vm" && command.attestAfter;
}

/**
 * Appraises a VM's evidence after a change. Undefined when the change doesn't boot the VM, when the
 * VM doesn't run, or when no evidence is required of it. Rejects when the VM can't be read.
 */
export async function appraisalAfter(
  { record: { target }, stage }: StoredRequest,
  command: ChangeCommand,
  { appraiser, policy }: { appraiser: Appraiser; policy: Policy },
): Promise<Appraisal | undefined> {
  const [before, after] = [beforeOf(stage), afterOf(stage)] as (Vm | undefined)[];
  const runs = statusFacts((after ?? before)?.status ?? "").isRunning;
  if (!isAttestedAfter(command) || !runs) return undefined;
  if (!(await appraiser.isAskedOf(target, [before, after]))) return undefined;
  const { appraisal } = await appraiser.attest(target, {
    notBefore: isAlready(stage) ? undefined : callOf(stage)?.sentAt,
    signal: AbortSignal.timeout(policy.timing.httpTimeoutMs),
  });
  return appraisal;
}

/**
 * Returns the IDs of the people and groups that may operate a target: those of its team, or those
 * in `access` when no team has it.
 */
function operatorsOf(target: Target, policy: Policy): readonly string[] {
  const all = rightsOver(policy, ownerOf(target)).flatMap(({ rights }) => rights.operate);
  return [...new Set(all)];
}

/** The result of a request, as a message in Slack tells it. */
export interface ToldResult {
  request: StoredRequest;
  /** The note in that message. Undefined where another process rendered the message. */
  note?: AfterNote | undefined;
}

/** The most notes that a process keeps. */
const mostNotes = 1_000;

/**
 * Creates the function that returns the note about attestation for a result. It checks a VM once,
 * right after the change has ended, and keeps the note, so that whatever tells of the request tells one
 * end, however often and wherever it is rendered. A
 * report that isn't there yet is called missing; it is never assumed.
 */
export function createAttestationNote(options: {
  appraiser: Appraiser;
  /** Read at each use, because it may change. */
  config: { readonly policy: Policy };
  /** When one of them checks evidence, the note of a failed read names it. */
  commands: readonly Command[];
  /** Tells why, and since when (ms), a VM is known to fail attestation. */
  failure?: (vmId: string) => Promise<{ reason: string; since: number } | undefined>;
  /** Keeps a note with its request. Resolves with the one that counts, which another process may have kept first. */
  keep(requestId: string, note: AfterNote): Promise<AfterNote>;
  log: Log;
}): (request: StoredRequest, command: ChangeCommand) => Promise<AfterNote | undefined> {
  const notes = new Map<string, Promise<AfterNote | undefined>>();
  return (request, command) => {
    // A change that wasn't applied may take effect late, and is checked then.
    if (request.state !== "done" || isAlready(request.stage)) return Promise.resolve(undefined);
    const { id } = request.record;
    const { evidence } = request.delivered;
    if (evidence !== undefined) return Promise.resolve(evidence);
    const note = notes.get(id) ?? noteOn(request, command);
    if (notes.size >= mostNotes) notes.clear();
    notes.set(id, note);
    return note;
  };

  async function noteOn(request: StoredRequest, command: ChangeCommand) {
    const note = await checkVm(request, command);
    return note && options.keep(request.record.id, note).catch(() => note);
  }

  async function checkVm(
    request: StoredRequest,
    command: ChangeCommand,
  ): Promise<AfterNote | undefined> {
    const { target } = request.record;
    try {
      const { appraiser, config } = options;
      const { policy } = config;
      const changedAt = sentAtOf(request);
      // The failure is read before the VM is attested again, because that records a new one.
      const known = await options.failure?.(target.id);
      const before = known && known.since < changedAt ? { ...known, changedAt } : undefined;
      const appraisal = await appraisalAfter(request, command, { appraiser, policy });
      const note = appraisal && afterChange(appraisal, before);
      if (!note?.but) return note;
      const called = mentions(operatorsOf(target, policy));
      if (called === "") return note;
      const line = md`${note.line} ${new Markdown(called)}, check whether this was meant.`;
      return { ...note, line };
    } catch (error) {
      const check = commandWithRole(options.commands, "shows-evidence");
      const way = check ? md` ${name(`/${check.name}`)} checks it.` : "";
      options.log.warn("attestation.unread", { vm: target.id, why: messageOf(error) });
      return {
        line: md`The attestation after this change could not be read.${way}`,
      };
    }
  }
}

/**
 * Whether a request ended with a change that is reported in other places too, even if the change
 * failed. A safety snapshot isn't reported, because it only prepares another change.
 */
export function isToldElsewhere({ record, state, final, stage }: StoredRequest): boolean {
  const wasMade = final && (state === "done" || state === "failed") && !isAlready(stage);
  return wasMade && record.origin.kind !== "safety";
}
