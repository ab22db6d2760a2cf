import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Policy, ServiceRule } from "../../config/policy-file.ts";
import type { Person } from "../../registry/invocation.ts";
import { type GatewayContext, seenBy, seenByService } from "../../slack/conversation/authorize.ts";

/** A program that gatehouse.yml names. */
export interface ServiceCaller {
  service: string;
  rule: ServiceRule;
}

/** Who asks through the door. */
export type Caller = ServiceCaller | { person: Person };

/** What this caller sees of everything. */
export const seenFrom = (caller: Caller, gateway: GatewayContext): GatewayContext =>
  "person" in caller
    ? seenBy({ userId: caller.person.id, teamId: caller.person.teamId }, gateway)
    : seenByService(caller.rule.view, gateway);

/** The service whose bearer token this is. Compared with every hash, so that the time tells nothing about which is near. */
export function serviceOf(
  headers: IncomingHttpHeaders,
  { services }: Pick<Policy, "services">,
): ServiceCaller | undefined {
  const [, token] = /^Bearer ([\x21-\x7e]{1,500})$/i.exec(headers.authorization ?? "") ?? [];
  if (token === undefined) return undefined;
  const given = Buffer.from(`sha256:${hash("sha256", token)}`);
  const isIt = (known: string) => timingSafeEqual(Buffer.from(known), given);
  const [found] = Object.entries(services)
    .flatMap(([service, rule]) => rule.tokens.map((known) => ({ service, rule, is: isIt(known) })))
    .filter(({ is }) => is);
  return found && { service: found.service, rule: found.rule };
}
