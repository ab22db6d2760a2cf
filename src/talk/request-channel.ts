import type { Policy } from "../config/policy-file.ts";
import { UserError } from "../errors.ts";
import { channelOfProject, scopeOfChannel } from "../core/permit/access.ts";
import { ownerOf } from "../core/permit/refusal.ts";
import type { Target } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import type { GatewayContext } from "./gateway-context.ts";

/**
 * A channel in which others see a request: the channel of the target's team, otherwise the first of
 * `channels` or the channel of `alerts`, if that channel may see the target.
 */
function channelOfOthers(target: Target, { policy }: { policy: Policy }): string | undefined {
  const { id, name: called = "" } = ownerOf(target);
  const project = { id, name: called };
  const ofTeam = channelOfProject(policy, project);
  if (ofTeam !== undefined) return ofTeam;
  const channel = policy.channels?.[0] ?? policy.alerts?.channel;
  if (channel === undefined) return undefined;
  return (scopeOfChannel(policy, channel)?.sees(project) ?? true) ? channel : undefined;
}

/** Who asks for a request, where, and on what target. */
export interface PlaceOfRequest {
  channelId: string;
  target: Target;
  person: Pick<Person, "id">;
}

/**
 * The channel for a request that needs approvals. A direct message is enough for a team's target,
 * because its card stands in the team's channel. Throws UserError when nobody else could see the
 * request.
 */
export function channelForApproval(
  { channelId, target }: PlaceOfRequest,
  gateway: GatewayContext,
): string {
  const { id, name: called = "" } = ownerOf(target);
  const isTeams = channelOfProject(gateway.policy, { id, name: called }) !== undefined;
  if (/^[CG]/.test(channelId) || (isTeams && channelId !== "")) return channelId;
  const channel = channelOfOthers(target, gateway);
  if (channel !== undefined) return channel;
  throw new UserError(
    "This needs approval, and no one else can see it here.",
    "Request it in a channel.",
  );
}

/**
 * The channel for messages about a request. A change pressed on the Home tab, which takes no
 * messages, is told where others see it; otherwise to its requester.
 */
export function channelToTell(
  { channelId, target, person }: PlaceOfRequest,
  gateway: GatewayContext,
): string {
  if (channelId !== "") return channelId;
  return channelOfOthers(target, gateway) ?? person.id;
}
