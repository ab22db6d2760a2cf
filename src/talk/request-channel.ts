import { UserError } from "../errors.ts";
import { channelOfProject, scopeOfChannel } from "../core/permit/access.ts";
import { ownerOf } from "../core/permit/refusal.ts";
import type { Target } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import type { GatewayContext } from "./gateway-context.ts";

/**
 * Where others see it: the channel of its team, else the first that policy allows, or that of `alerts`, where that may see the
 * target.
 */
function channelOfOthers(target: Target, { policy }: GatewayContext): string | undefined {
  const { id, name: called = "" } = ownerOf(target);
  const project = { id, name: called };
  const ofTeam = channelOfProject(policy, project);
  if (ofTeam !== undefined) return ofTeam;
  const channel = policy.channels?.[0] ?? policy.alerts?.channel;
  if (channel === undefined) return undefined;
  return (scopeOfChannel(policy, channel)?.sees(project) ?? true) ? channel : undefined;
}

/** Where a request is asked for, about what, and by whom. */
export interface PlaceOfRequest {
  channelId: string;
  target: Target;
  person: Pick<Person, "id">;
}

/** Approvals need a channel. What a team decides has its card there, and a message where it was requested. */
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

/** The Home tab takes no messages: a change that is pressed there is told where others see it, or else its requester alone. */
export function channelToTell(
  { channelId, target, person }: PlaceOfRequest,
  gateway: GatewayContext,
): string {
  if (channelId !== "") return channelId;
  return channelOfOthers(target, gateway) ?? person.id;
}
