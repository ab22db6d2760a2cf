import { isDeepStrictEqual } from "node:util";
import { ComputeError } from "../../fleet/compute/compute.ts";
import { type ProposalRecord, decidedRefusal, proposalRefusal, proposalsOf } from "./proposals.ts";
import { UserError } from "../../errors.ts";
import { plainWords } from "../../messages/message.ts";
import type { Permit } from "../../core/permit/permit.ts";
import {
  type ChangeCommand,
  type Target,
  restoresSnapshot,
  snapshotLister,
  freezeEnder,
} from "../../registry/define.ts";
import { mayPropose } from "../../core/permit/service-rights.ts";
import { asNamedNow } from "../../core/perform/read-target.ts";
import { frozenLine } from "../../talk/authorize.ts";
import { type GatewayContext, changeNamed, outdated } from "../../talk/gateway-context.ts";
import { seenByService } from "../../talk/visible-to.ts";
import type { Origin } from "../../core/request/origin.ts";

/** A proposal that this person may still decide, as far as the proposal goes. Throws UserError. */
export async function findProposal(
  id: string,
  personId: string,
  gateway: GatewayContext,
  { isToDismiss = false } = {},
) {
  const { policy } = gateway;
  const proposals = proposalsOf(gateway);
  const proposal = await proposals.get(id);
  const command = changeNamed(proposal?.record.command, gateway);
  if (!proposal || !command) throw outdated();
  const now = await proposals.now();
  const { by, target } = proposal.record;
  if (isToDismiss) {
    const decided = decidedRefusal(proposal, { personId, now });
    if (decided !== undefined) throw new UserError(decided);
    return { proposal, command };
  }
  const today = "service" in by ? await targetToday(target, gateway) : target;
  if (!today)
    throw new UserError(`${target.name} is gone. Nothing was done.`, "Dismiss this proposal.");
  const refused = proposalRefusal(
    { ...proposal, record: { ...proposal.record, target: today } },
    command,
    { personId, policy, now },
  );
  if (refused !== undefined) throw new UserError(refused);
  await refuseOtherSnapshot(proposal.record, command, gateway);
  return { proposal, command, today };
}

/** A press waits no longer: what it opens must be open within three seconds. */
const readWithinMs = 1_000;

/**
 * The target as it is called and whose it is at the press: what a service may propose goes by that, not by what was so when it did.
 * Undefined for one that is gone. Throws UserError where the compute service doesn't tell: a name that Gatehouse knew before could
 * allow what the name of now doesn't.
 */
async function targetToday(
  target: Target,
  { compute }: GatewayContext,
): Promise<Target | undefined> {
  // One that is to be made has no ID
  if (target.id === "") return target;
  const within = { signal: AbortSignal.timeout(readWithinMs) };
  try {
    let isWhole = true;
    const options = { ...within, onGaps: () => void (isWhole = false) };
    const { get } = target.kind === "vm" ? compute.vms : compute.projects;
    const { id, name, ...rest } = await get(target.id, options);
    const projectId = "projectId" in rest ? rest.projectId : id;
    const named =
      isWhole && (await asNamedNow({ ...target, name, projectId }, { compute }, within));
    if (named) return named;
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    if (error.kind === "not-found") return undefined;
  }
  const inTime = within.signal.aborted ? " in time" : "";
  throw new UserError(
    `The compute service didn't say${inTime} what ${target.name} is called now. Nothing was done.`,
    "Press Run again.",
  );
}

/**
 * A restore takes what was proposed: throws UserError where Gatehouse no longer has that snapshot, where it is another VM's, and
 * where the service that proposed it or whoever presses doesn't see it.
 */
async function refuseOtherSnapshot(
  { by, input, target, labels }: ProposalRecord,
  command: ChangeCommand,
  gateway: GatewayContext,
): Promise<void> {
  const { snapshot } = input;
  if (!restoresSnapshot(command) || typeof snapshot !== "string") return;
  // Whoever doesn't see the VM is refused like anybody without the right to it
  const vm = await gateway.inventory.findVm(target.id, { onlyKnown: true });
  if (!("found" in vm) || vm.found.id !== target.id) return;
  const called = labels["snapshot"] ?? snapshot;
  const lister = snapshotLister(gateway.commands);
  const list = lister ? `: \`/${lister.name} ${target.name}\` lists what can be restored` : "";
  const way = `Dismiss this proposal${list}.`;
  const known = await gateway.snapshots.of(target.id);
  // Taken elsewhere, it never was among those
  if (labels["snapshot"] !== undefined && !known.some(({ id }) => id === snapshot))
    throw new UserError(`The snapshot ${called} is gone. Nothing was done.`, way);
  const owner = await gateway.snapshots.ownerOf(snapshot);
  if (owner !== undefined && owner !== target.id)
    throw new UserError(
      `The snapshot ${called} isn't one of ${target.name}. Nothing was done.`,
      way,
    );
  if (!("service" in by)) return;
  const view = gateway.policy.services[by.service]?.view ?? [];
  const { snapshots } = seenByService(view, gateway);
  await snapshots.ownerOf(snapshot).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    const no = `${by.service} no longer sees the snapshot ${called}. Nothing was done.`;
    throw new UserError(no, way);
  });
}

/** Two people may press at once. */
const mostTries = 5;

/**
 * Right before a request is made of a proposal: from then on nobody dismisses it. What was
 * proposed must be what is asked for; a form may only add to it. Throws UserError.
 */
export async function takeProposal(
  { command, input, target, person }: Permit,
  origin: Origin,
  gateway: GatewayContext,
): Promise<void> {
  if (origin.kind !== "proposal") return;
  const frozen = await frozenLine(gateway);
  if (frozen) {
    const ender = freezeEnder(gateway.commands);
    const end = ender ? `\`/${ender.name}\`` : "the freeze ends";
    throw new UserError(plainWords(frozen), `It stays open: press Run after ${end}.`);
  }
  for (let tries = 0; tries < mostTries; tries++) {
    const { proposal, today } = await findProposal(origin.proposal, person.id, gateway);
    const { record } = proposal;
    const way = "Leave what was proposed as it is, or run the command yourself.";
    const isSame = Object.entries(record.input).every(([key, value]) =>
      isDeepStrictEqual(asInForms(input[key]), asInForms(value)),
    );
    if (record.command !== command.name || record.target.id !== target.id || !isSame)
      throw new UserError("This is no longer what was proposed. Nothing was done.", way);
    const { by } = record;
    const rule = "service" in by ? gateway.policy.services[by.service] : undefined;
    // One that is to be made is called as was filled in
    const named = target.id === "" ? target : today;
    if ("service" in by && rule && !mayPropose(rule, command, named, input))
      throw new UserError(
        `gatehouse.yml doesn't let ${by.service} propose this with what was filled in. Nothing was done.`,
        way,
      );
    if (await proposalsOf(gateway).take(proposal)) return;
  }
  throw new UserError("This proposal just changed. Nothing was done.", "Press the button again.");
}

/** A form takes spaces away around what is filled in, and leaves out what is empty. */
const asInForms = (value: unknown) =>
  typeof value === "string" ? value.trim() || undefined : value;
