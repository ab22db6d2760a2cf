import { isDeepStrictEqual } from "node:util";
import { type Compute, ComputeError } from "../../fleet/compute/compute.ts";
import {
  type ProposalRecord,
  decidedRefusal,
  hasExpired,
  proposalRefusal,
  proposalsOf,
  requestOf,
  askedOthers,
  askedYourself,
} from "./proposals.ts";
import { UserError } from "../../errors.ts";
import { plainWords } from "../../messages/markdown.ts";
import type { Permit } from "../../core/permit/permit.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { type ChangeCommand, type Target, restoresSnapshot } from "../../registry/define.ts";
import { isSamePerson } from "../../core/permit/approval-rule.ts";
import { mayPropose } from "../../core/permit/service-rights.ts";
import { targetChange } from "../../core/perform/gate.ts";
import { asNamedNow, readTarget } from "../../core/perform/read-target.ts";
import { isList } from "../../core/request/seen.ts";
import { frozenLine } from "../../talk/authorize.ts";
import { type GatewayContext, changeNamed, outdated } from "../../talk/gateway-context.ts";
import { seenByService } from "../../talk/visible-to.ts";
import type { Origin } from "../../core/request/origin.ts";
import { deadlineSignal } from "../../deadline.ts";

/**
 * Finds a proposal that this person may still run or dismiss, as far as the proposal decides that.
 * Throws UserError.
 */
export async function findProposal(
  id: string,
  personId: string,
  gateway: GatewayContext,
  { isToDismiss = false } = {},
) {
  const { policy } = gateway;
  const proposals = proposalsOf(gateway);
  const stored = await proposals.get(id);
  const command = changeNamed(stored?.record.command, gateway);
  if (!stored || !command) throw outdated();
  const now = await proposals.now();
  // A press that is handled again, after its process died, must not read that nothing was done.
  const late = hasExpired(stored, now) ? await requestOf(stored, gateway.store) : undefined;
  const proposal = late ? { ...stored, request: late.record.id } : stored;
  if (late) await proposals.redraw(id);
  const { by: proposer, target } = proposal.record;
  if (isToDismiss) {
    const decided = decidedRefusal(proposal, { personId, now });
    if (decided !== undefined) throw new UserError(decided);
    return { proposal, command };
  }
  const read = await targetToday(target, gateway);
  if (!read)
    throw new UserError(`${target.name} is gone. Nothing was done.`, "Dismiss this proposal.");
  if ("asker" in proposer && (await isOnePerson(personId, proposer.asker.id, gateway)))
    throw new UserError(askedYourself);
  const { today, isOther } = read;
  const refused = proposalRefusal(
    { ...proposal, record: { ...proposal.record, target: today } },
    command,
    { personId, policy, now },
  );
  if (refused !== undefined) throw new UserError(refused);
  if (isOther)
    throw new UserError(
      `${target.name} was renamed, moved, or replaced since this was asked. Nothing was done.`,
      "Dismiss this. Whoever wants it asks again.",
    );
  await refuseOtherSnapshot(proposal.record, command, gateway);
  return { proposal, command, today };
}

/** Whether two accounts belong to one person, who can't run what they asked others for. */
async function isOnePerson(
  account: string,
  other: string,
  { person, ourTeamId }: { person: GatewayContext["person"]; ourTeamId: string },
): Promise<boolean> {
  const [first, second] = await Promise.all([person(account, ourTeamId), person(other, ourTeamId)]);
  return isSamePerson(first, second);
}

/** The longest read during a press (ms): Slack opens a form only within three seconds. */
const readWithinMs = 1_000;

/**
 * Reads the target's present name and project, which decide what may be run, not those at the time
 * of the proposal. Undefined when the target is gone. `isOther`: the card names another VM or
 * project than the one that would be changed. Throws UserError when the compute service doesn't
 * answer, because an old name could allow what the present one doesn't.
 */
async function targetToday(
  target: Target,
  { compute }: { compute: Compute },
): Promise<{ today: Target; isOther: boolean } | undefined> {
  // A target that doesn't exist yet has no ID.
  if (target.id === "") return { today: target, isOther: false };
  const within = { signal: deadlineSignal(readWithinMs) };
  try {
    let isWhole = true;
    const options = { ...within, onGaps: () => void (isWhole = false) };
    const { seen } = await readTarget(target, { compute }, options);
    if (seen === undefined || isList(seen)) return undefined;
    const { id, name, ...rest } = seen;
    const projectId = "projectId" in rest ? rest.projectId : id;
    const named =
      isWhole && (await asNamedNow({ ...target, name, projectId }, { compute }, within));
    const { specs: _specs, ...identity } = target;
    if (named) return { today: named, isOther: targetChange(identity, seen) !== undefined };
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
  }
  const inTime = within.signal.aborted ? " in time" : "";
  throw new UserError(
    `The compute service didn't say${inTime} what ${target.name} is called now. Nothing was done.`,
    "Press Run again.",
  );
}

/**
 * Checks that a restore still means the proposed snapshot. Throws UserError when Gatehouse no
 * longer knows the snapshot, when it is of another VM, and when the service or the person doesn't
 * see it.
 */
async function refuseOtherSnapshot(
  { by: proposer, input, target, labels }: ProposalRecord,
  command: ChangeCommand,
  gateway: GatewayContext,
): Promise<void> {
  const { snapshot } = input;
  if (!restoresSnapshot(command) || typeof snapshot !== "string") return;
  // A person who doesn't see the VM is refused later, like anyone without the right to it.
  const vm = await gateway.inventory.findVm(target.id, { onlyKnown: true });
  if (!("record" in vm) || vm.record.id !== target.id) return;
  const called = labels["snapshot"] ?? snapshot;
  const lister = commandWithRole(gateway.commands, "lists-snapshots");
  const list = lister ? `: \`/${lister.name} ${target.name}\` lists what can be restored` : "";
  const way = `Dismiss this proposal${list}.`;
  const known = await gateway.snapshots.of(target.id);
  // A snapshot without a label was taken elsewhere and never was among the known ones.
  if (labels["snapshot"] !== undefined && !known.some(({ id }) => id === snapshot))
    throw new UserError(`The snapshot ${called} is gone. Nothing was done.`, way);
  const owner = await gateway.snapshots.ownerOf(snapshot);
  if (owner !== undefined && owner !== target.id)
    throw new UserError(
      `The snapshot ${called} isn't one of ${target.name}. Nothing was done.`,
      way,
    );
  if (!("service" in proposer)) return;
  const view = gateway.policy.services[proposer.service]?.view ?? [];
  const { snapshots } = seenByService(view, gateway);
  await snapshots.ownerOf(snapshot).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    const no = `${proposer.service} no longer sees the snapshot ${called}. Nothing was done.`;
    throw new UserError(no, way);
  });
}

/** Several tries, because two people may press at the same time. */
const mostTries = 5;

/**
 * Takes a proposal right before a request is made of it; from then on nobody can dismiss it. The
 * request must be what was proposed; a form may only add to it. Throws UserError.
 */
export async function takeProposal(
  { command, input, target, person }: Permit,
  origin: Origin,
  gateway: GatewayContext,
): Promise<void> {
  if (origin.kind !== "proposal") return;
  const frozen = await frozenLine(gateway);
  if (frozen) {
    const ender = commandWithRole(gateway.commands, "ends-freeze");
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
    const { by: proposer } = record;
    // Whoever asked for it can't approve it, so the request must name them, and approvers read why.
    const isTheirs = ("asker" in proposer ? proposer.asker.id : undefined) === origin.asker;
    if (!isTheirs || !isDeepStrictEqual(askedOthers(record), origin.asked))
      throw new UserError("This is no longer what was proposed. Nothing was done.", way);
    const rule = "service" in proposer ? gateway.policy.services[proposer.service] : undefined;
    // A target that doesn't exist yet has the name that was filled in.
    const named = target.id === "" ? target : today;
    if ("service" in proposer && rule && !mayPropose(rule, command, named, input))
      throw new UserError(
        `gatehouse.yml doesn't let ${proposer.service} propose this with what was filled in. Nothing was done.`,
        way,
      );
    if (await proposalsOf(gateway).take(proposal)) return;
  }
  throw new UserError("This proposal just changed. Nothing was done.", "Press the button again.");
}

/** The value as a form returns it: trimmed, and missing when empty. */
const asInForms = (value: unknown) =>
  typeof value === "string" ? value.trim() || undefined : value;
