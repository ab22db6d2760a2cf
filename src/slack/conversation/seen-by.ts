import { scopeOfPerson } from "../../policy/scope.ts";
import type { Person } from "../../registry/person.ts";
import type { Interaction } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { journalSeenBy, type Viewer } from "./journal-seen-by.ts";
import { rolloutsSeenBy, snapshotsSeenBy } from "./records-seen-by.ts";

/**
 * What the person behind an interaction may see of everything: the VMs and projects of their teams and of no team, and the
 * requests, rollouts, and snapshots of them. Every handler gets this instead of the whole, so that a new command can't
 * forget it; what is hidden is answered like what doesn't exist. Without teams, and without rules that name who votes, it is
 * the whole.
 */
export function seenBy(
  { userId, teamId }: Pick<Interaction, "userId" | "teamId">,
  gateway: GatewayContext,
): GatewayContext {
  const { policy, ourTeamId } = gateway;
  const { teams, approvals } = policy;
  if (Object.keys(teams).length === 0 && approvals.every(({ votes }) => !votes)) return gateway;
  let asked: Promise<Person> | undefined;
  const person = () => (asked ??= gateway.person(userId, teamId));
  const scope = async () => scopeOfPerson(policy, await person(), ourTeamId);
  const viewer: Viewer = { person, scope };
  const inventory = gateway.inventory.seenIn(scope);
  return {
    ...gateway,
    inventory,
    store: journalSeenBy(viewer, gateway),
    rollouts: rolloutsSeenBy(viewer, gateway),
    snapshots: snapshotsSeenBy(viewer, gateway.snapshots, inventory),
    status: () => gateway.status(inventory),
  };
}
