import { statusFacts, type Vm } from "../../fleet/compute/compute.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  evidenceReader,
} from "../../registry/define.ts";
import { isList } from "../request/seen.ts";
import { type StoredRequest, sentAtOf } from "../request/stored-request.ts";
import { afterChange, type AfterNote } from "../../attestation/render-attestation.ts";
import type { Appraisal } from "../../attestation/appraise.ts";
import type { Appraiser } from "../../attestation/appraiser.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Message, notice, lines, Markdown, md, name } from "../../messages/message.ts";
import type { Policy } from "../../config/policy-file.ts";
import { ownerOf } from "../permit/refusal.ts";
import { rightsOver } from "../permit/access.ts";
import { mentions, isChannel } from "../cards/render-result.ts";
import type { Journal } from "../request/journal.ts";
import { afterOf, beforeOf, callOf, isAlready, deciderOf } from "../request/stage.ts";

/** What its end showed is known from here on, before the service is read again. Idempotent, and only for one that has just ended. */
export async function noteOutcome(
  { record, stage, state }: StoredRequest,
  command: ChangeCommand,
  inventory: Inventory,
): Promise<void> {
  const [after, decidedBy] = [afterOf(stage), deciderOf(stage)];
  // What a person decides was seen long before
  if (state !== "done" && (state !== "failed" || decidedBy)) return;
  if (after === undefined) {
    if (state === "done" && command.on === "project" && command.deletes)
      await inventory.note({ goneProjectId: record.target.id });
    return;
  }
  for (const seen of isList(after) ? after : [after])
    await inventory.note("projectId" in seen ? { vm: seen } : { project: seen });
}

/** The VM boots in this change, so its old attestation says nothing. */
export function isAttestedAfter(command: ChangeCommand): boolean {
  return command.on === "vm" && command.attestAfter;
}

/** What is made of a VM's evidence after its change; undefined where it doesn't run, or none is asked of it. */
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

/** Who may operate a target: its team, or `access` for what no team has. */
function operatorsOf(target: Target, policy: Policy): readonly string[] {
  const all = rightsOver(policy, ownerOf(target)).flatMap(({ rights }) => rights.operate);
  return [...new Set(all)];
}

const maxKept = 1_000;

/**
 * One check, right after the VM has settled, however often its result is rendered until it can be posted: a report that isn't
 * there yet is called missing, never assumed.
 */
export function createAttestationNote(by: {
  appraiser: Appraiser;
  /** Read at each use: it may change. */
  config: { readonly policy: Policy };
  /** The one that checks evidence is named, where there is one. */
  commands: readonly Command[];
  /** Why, and since when (ms), a VM is known to fail. */
  failure?: (vmId: string) => Promise<{ reason: string; since: number } | undefined>;
  log: Log;
}): (request: StoredRequest, command: ChangeCommand) => Promise<AfterNote | undefined> {
  const notes = new Map<string, Promise<AfterNote | undefined>>();
  return (request, command) => {
    const { id } = request.record;
    const note = notes.get(id) ?? noteOf(request, command);
    if (notes.size >= maxKept) notes.clear();
    notes.set(id, note);
    return note;
  };

  async function noteOf(
    request: StoredRequest,
    command: ChangeCommand,
  ): Promise<AfterNote | undefined> {
    const { target } = request.record;
    if (request.state !== "done" || request.stage.already) return undefined;
    try {
      const { appraiser, config } = by;
      const { policy } = config;
      const changedAt = sentAtOf(request);
      // Before it is attested again, which remembers what it finds
      const known = await by.failure?.(target.id);
      const before = known && known.since < changedAt ? known : undefined;
      const appraisal = await appraisalAfter(request, command, { appraiser, policy });
      const found = appraisal && afterChange(appraisal, before);
      if (!found?.but) return found;
      const called = new Markdown(mentions(operatorsOf(target, policy)));
      return { ...found, line: lines(found.line, called) };
    } catch (error) {
      const check = evidenceReader(by.commands);
      const way = check ? md` ${name(`/${check.name}`)} checks it.` : "";
      by.log.warn("attestation.unread", { vm: target.id, why: messageOf(error) });
      return {
        line: md`The attestation after this change could not be read.${way}`,
      };
    }
  }
}

/** A change that was made, and not only in preparation of another. */
export function isToldElsewhere({ record, state, final, stage }: StoredRequest): boolean {
  const wasMade = final && (state === "done" || state === "failed") && !isAlready(stage);
  return wasMade && record.origin.kind !== "safety";
}

const recentMs = 3600_000;
/** Of each kind: the newest. */
const maxRead = 1000;

/** Channels where a request is open, or was made within the last hour: people there wait for something. */
export async function busyChannels(store: Journal): Promise<string[]> {
  const now = await store.now();
  const ids = await Promise.all([
    store.recentIds({ open: true }, maxRead),
    store.idsAskedBetween(now - recentMs, now, maxRead),
  ]);
  const requests = await store.getMany([...new Set(ids.flat())]);
  const channels = requests.flatMap(({ record, delivered }) => [
    record.channelId,
    delivered.card?.channelId ?? record.channelId,
  ]);
  return [...new Set(channels)].filter(isChannel);
}

/** For channels where people wait for something. `end`: the command that ends it, where there is one. */
export function freezeNews(
  { by, reason }: { by: string; reason: string },
  end: Pick<Command, "name"> | undefined,
): Message {
  const way = end && md` ${name(`/${end.name}`)} ends it.`;
  return notice(
    md`🧊 ${by} froze all changes${reason ? md`: ${reason}` : ""}. What was not sent yet won't run; reads still work.${way ?? ""}`,
  );
}
