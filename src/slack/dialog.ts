import type { Vm } from "../compute/compute.ts";
import type { KnownSnapshot } from "../inventory/snapshots.ts";
import { type Markdown, md } from "../messages/text.ts";
import { approvalRule, type NeededApprovals } from "../policy/approval-rule.ts";
import { rollbackReason } from "../policy/rollback.ts";
import type { ChangeCommand, DialogFacts, Seen } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import { readTarget } from "../requests/gate.ts";
import { apologise } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { type DialogMeta, dialogView, loadingView, stoppedView, titleOf } from "./dialog-view.ts";
import type { Reply } from "./reply.ts";
import type { Talk } from "./talk.ts";

/** Whether a command is confirmed in a dialog: what destroys always is. */
export function needsDialog(command: ChangeCommand): boolean {
  return command.class === "destroy" || command.dialog !== undefined;
}

/** Opens the dialog within the trigger's three seconds, reads what stands, then shows it. False when Slack didn't open it. */
export async function openDialog(
  command: ChangeCommand,
  target: Target,
  input: Record<string, unknown>,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<boolean> {
  const title = titleOf(command);
  const opened = await reply.open(loadingView(title));
  if (!opened) return false;
  try {
    const view = await makeDialog(command, target, input, metaOf(command, target, ask, talk), talk);
    await reply.update(opened.id, view);
  } catch (error) {
    const { text } = apologise(error, talk.log);
    await reply.update(opened.id, stoppedView(title, md`${text}`));
  }
  return true;
}

export async function makeDialog(
  command: ChangeCommand,
  target: Target,
  input: Record<string, unknown>,
  meta: DialogMeta,
  talk: Talk,
) {
  const facts = await gatherFacts(command, target, input, talk);
  const notNow = command.effect.notNow as
    | ((seen: Seen, args: unknown) => { text: string; hint?: string } | undefined)
    | undefined;
  if (facts.seen && command.on !== "new-project") {
    const refused = notNow?.(facts.seen, input);
    if (refused) return stoppedView(titleOf(command), md`${refused.text} ${refused.hint ?? ""}`);
  }
  const needed = neededApprovals(command, target, facts, talk);
  return dialogView({ command, facts, meta, approvals: approvalWords(needed) });
}

function metaOf(command: ChangeCommand, target: Target, ask: Ask, talk: Talk): DialogMeta {
  return {
    command: command.name,
    targetId: target.id,
    channelId: ask.channelId,
    ...(ask.threadTs ? { threadTs: ask.threadTs } : {}),
    ...(ask.responseUrl ? { sealedResponseUrl: talk.seal(ask.responseUrl) } : {}),
  };
}

/** Everything a person should see before they press, read just now. */
export async function gatherFacts(
  command: ChangeCommand,
  target: Target,
  input: Record<string, unknown>,
  talk: Talk,
): Promise<DialogFacts> {
  if (command.on === "new-project")
    return { target, seen: undefined, vms: [], snapshots: [], input };
  const { seen, vms } = await readTarget(target, talk);
  const ofVms: readonly Pick<Vm, "id">[] = target.kind === "vm" ? [{ id: target.id }] : vms;
  const snapshots = (
    await Promise.all(ofVms.slice(0, 50).map(({ id }) => talk.snapshots.of(id)))
  ).flat();
  const owner =
    typeof input["snapshot"] === "string"
      ? await talk.snapshots.ownerOf(input["snapshot"])
      : undefined;
  return {
    ...(owner !== undefined && owner !== target.id ? { foreignSnapshotOf: owner } : {}),
    target,
    seen: Array.isArray(seen) ? undefined : (seen as DialogFacts["seen"]),
    vms,
    snapshots,
    input,
  };
}

export type Needed = NeededApprovals & { raised?: string };

/** The approvals that policy asks for, and one more where a restore would roll back to something else than stands. */
export function neededApprovals(
  command: ChangeCommand,
  target: Target,
  facts: Pick<DialogFacts, "seen" | "snapshots" | "input">,
  talk: Pick<Talk, "policy" | "now">,
): Needed {
  const needed = approvalRule(talk.policy, command, [target]);
  const snapshot = chosenSnapshot(facts);
  if (command.name !== "vm restore" || needed.required === 0) return needed;
  if (facts.input["snapshot"] === undefined) return needed;
  const vm = facts.seen && "projectId" in facts.seen ? facts.seen : undefined;
  const raised = rollbackReason({
    snapshot,
    measurementNow: vm?.attestation?.measurement,
    maxAgeMs: talk.policy.attestation.maxSnapshotAgeMs,
    now: talk.now(),
  });
  return raised ? { ...needed, required: needed.required + 1, raised } : needed;
}

export function chosenSnapshot({
  snapshots,
  input,
}: Pick<DialogFacts, "snapshots" | "input">): KnownSnapshot | undefined {
  const words = input["snapshot"];
  return snapshots.find(({ id, name: called }) => id !== "" && (id === words || called === words));
}

function approvalWords(needed: Needed): Markdown | undefined {
  if (needed.required === 0) return undefined;
  const people = needed.required === 1 ? "one other person" : `${needed.required} other people`;
  const raised = needed.raised ? md` One more than usual: ${needed.raised}.` : md``;
  return md`It needs the approval of ${people}: ${needed.why}.${raised}`;
}
