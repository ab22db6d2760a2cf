import type { Snapshots } from "../../fleet/inventory/snapshots.ts";
import type { Policy } from "../../config/policy-file.ts";
import { channelOfProject, scopeOfChannel } from "../../core/permit/access.ts";
import { approvalsFor } from "../../core/permit/permit.ts";
import { isRunIn, ownerOf } from "../../core/permit/refusal.ts";
import { type Unrunnable, forbiddenToAll, withoutPeople } from "../../core/permit/unrunnable.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import {
  type Command,
  type ChangeCommand,
  type Target,
  restoresSnapshot,
} from "../../registry/define.ts";
import { type Input, withIds, withTarget } from "../../registry/invocation.ts";
import { labelsOf, unread } from "../../talk/dialog-facts.ts";
import type { GatewayContext } from "../../talk/gateway-context.ts";
import { restoringOf } from "../../talk/permit-by-facts.ts";
import type { ProposalRecord } from "./proposals.ts";

interface ProposedChange {
  command: ChangeCommand;
  input: Input;
  target: Target;
}

/** A change as its proposal keeps it. */
export type PreparedChange = Pick<ProposalRecord, "input" | "target" | "labels" | "risk">;

/**
 * Prepares a change for a proposal: with IDs in place of names, and with what it would lose.
 * `never`: nobody could run it, by gatehouse.yml alone; `runner` is the only person who may press.
 * Throws UserError for a snapshot that the proposer doesn't see.
 */
export async function prepareChange(
  { command, input: written, target }: ProposedChange,
  gateway: GatewayContext,
  { runner }: { runner?: string | undefined } = {},
): Promise<PreparedChange | { never: Unrunnable }> {
  const { snapshots, inventory, policy, ourTeamId } = gateway;
  const isProject = target.kind === "project" && target.id !== "";
  const vms = isProject ? await inventory.vms({ projectId: target.id }) : [];
  const exact = await withIds(command, written, target, gateway);
  const input = withTarget(command, exact, target);
  const ofVm = target.kind === "vm" ? await snapshots.of(target.id) : [];
  const facts = { ...unread(target, input), vms, snapshots: ofVm };
  const asked = { command, targets: [target], input, vms };
  const judged = { ...asked, policy, ourTeamId };
  const restoring = restoringOf(facts, gateway.now());
  const needed = approvalsFor({ ...judged, restoring }, gateway);
  const never =
    forbiddenToAll(judged) ??
    (await snapshotProblem({ command, input, target }, gateway)) ??
    withoutPeople(judged, needed, runner);
  if (never) return { never };
  const { labels = {}, snapshotAt: since } = labelsOf(facts);
  const lost = since === undefined ? undefined : { since, forMs: gateway.now() - since };
  const risk = command.risk?.({ target, input, vms, lost }) ?? [];
  return { input, target, labels, risk: risk.map(String) };
}

/**
 * Why a restore can't be proposed: it names no snapshot, or one of another VM. Throws UserError for
 * a snapshot that the caller doesn't see.
 */
async function snapshotProblem(
  { command, input: { snapshot }, target: { id, name } }: ProposedChange,
  { snapshots, commands }: { snapshots: Snapshots; commands: readonly Command[] },
): Promise<Unrunnable | undefined> {
  if (!restoresSnapshot(command)) return undefined;
  const rule = "input.snapshot";
  if (typeof snapshot !== "string")
    return {
      rule,
      title: "The snapshot is missing.",
      detail: "Name it behind the VM: what is restored isn't left open.",
    };
  const owner = await snapshots.ownerOf(snapshot);
  if (owner === undefined || owner === id) return undefined;
  const lister = commandWithRole(commands, "lists-snapshots");
  const detail = lister
    ? `\`/${lister.name} ${name}\` lists those that can be restored.`
    : "Name one of its own.";
  return { rule, title: `The snapshot ${snapshot} isn't one of ${name}.`, detail };
}

/**
 * Finds a channel that may be told of the target, and in which the command can be run: `first`, if
 * it may; otherwise the team's, then `second`, and those of `alerts` and `audit`. `lacks`: no
 * channel may be told of it, or the command can be run in none of those that may.
 */
export function placeFor(
  { command, target }: Pick<ProposedChange, "command" | "target">,
  { policy }: { policy: Policy },
  { first, second }: { first?: string | undefined; second?: string | undefined },
): { channelId: string } | { lacks: "channel" | "right" } {
  const { id, name = "" } = ownerOf(target);
  const isTold = (channel: string) => scopeOfChannel(policy, channel)?.sees({ id, name }) ?? true;
  const team = channelOfProject(policy, { id, name });
  const all = [first, team, second, policy.alerts?.channel, policy.audit?.channel];
  const channels = all
    .filter((channel) => channel !== undefined)
    .filter((channel) => channel === team || isTold(channel));
  const channelId = channels.find((channel) => isRunIn({ policy, command, channelId: channel }));
  if (channelId !== undefined) return { channelId };
  return { lacks: channels.length === 0 ? "channel" : "right" };
}
