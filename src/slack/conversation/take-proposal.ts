import { isDeepStrictEqual } from "node:util";
import { decidedRefusal, proposalIn, proposalRefusal } from "../../door/proposals.ts";
import { ComputeError } from "../../compute/compute.ts";
import { UserError } from "../../errors.ts";
import type { Target } from "../../registry/define.ts";
import { plainWords } from "../../messages/message.ts";
import { asNamedNow } from "../../requests/perform/gate.ts";
import { targetOf } from "../../requests/submit/submit.ts";
import type { Submission } from "../../requests/submit/submit.ts";
import { changeNamed, frozenLine, type GatewayContext, outdated } from "./authorize.ts";

/** A proposal that this person may still decide, as far as the proposal goes. Throws UserError. */
export async function findProposal(
  id: string,
  personId: string,
  gateway: GatewayContext,
  { isToDismiss = false } = {},
) {
  const { proposals, policy } = gateway;
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
  return { proposal, command };
}

const readWithinMs = 1_000;

/**
 * The target as it is called and whose it is at the press: what a service may propose goes by that, not by what was so when it did.
 * Where the compute service doesn't tell in time, as Gatehouse knows it; undefined for what neither has.
 */
async function targetToday(
  target: Target,
  { compute, inventory }: GatewayContext,
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
    if (error instanceof ComputeError && error.kind === "not-found") return undefined;
  }
  const find = target.kind === "vm" ? inventory.findVm : inventory.findProject;
  const known = await find(target.id, { onlyKnown: true });
  return "found" in known && known.found.id === target.id ? targetOf(known.found) : undefined;
}

/** Two people may press at once. */
const mostTries = 5;

/**
 * Right before a request is made of a proposal: from then on nobody dismisses it. Its ID, undefined for any other request. What was
 * proposed must be what is asked for; a form may only add to it. Throws UserError.
 */
export async function takeProposal(
  { interactionId, command, input, target, person }: Submission,
  gateway: GatewayContext,
): Promise<string | undefined> {
  const id = proposalIn(interactionId);
  if (id === undefined) return undefined;
  const frozen = await frozenLine(gateway);
  if (frozen)
    throw new UserError(plainWords(frozen), "It stays open: press Run after `/gatehouse thaw`.");
  for (let tries = 0; tries < mostTries; tries++) {
    const { proposal } = await findProposal(id, person.id, gateway);
    const { record } = proposal;
    const isSame = Object.entries(record.input).every(([key, value]) =>
      isDeepStrictEqual(input[key], value),
    );
    if (record.command !== command.name || record.target.id !== target.id || !isSame)
      throw new UserError(
        "This is no longer what was proposed. Nothing was done.",
        "Leave what was proposed as it is, or run the command yourself.",
      );
    if (await gateway.proposals.take(proposal)) return id;
  }
  throw new UserError("This proposal just changed. Nothing was done.", "Press the button again.");
}
