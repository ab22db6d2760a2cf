import { hash, timingSafeEqual } from "node:crypto";
import type { Policy, ServiceRule } from "../config/policy-file.ts";
import type { Person } from "../registry/invocation.ts";
import type { GatewayContext } from "../talk/gateway-context.ts";
import { seenBy, seenByService } from "../talk/visible-to.ts";
import { type Call, type Handle, ApiProblem, unauthorized } from "./server.ts";

/** A program that gatehouse.yml names. */
export interface ServiceCaller {
  service: string;
  rule: ServiceRule;
}

/** The caller of the API: a service or a person. */
export type Caller = ServiceCaller | { person: Person };

/** The place of a service in gatehouse.yml, or the ID of a person. */
export const callerName = (caller: { service: string } | { person: { id: string } }): string =>
  "service" in caller ? `services.${caller.service}` : caller.person.id;

/** The context restricted to what this caller may see. */
export const seenFrom = (caller: Caller, gateway: GatewayContext): GatewayContext =>
  "person" in caller
    ? seenBy({ userId: caller.person.id, teamId: caller.person.teamId }, gateway)
    : seenByService(caller.rule.view, gateway);

/**
 * The service to which this bearer token belongs; the call is counted by the service's name. The
 * token is compared with every hash, so that the time doesn't tell which one is near. Throws
 * ApiProblem.
 */
export async function serviceOf(
  { headers }: Call,
  named: Parameters<Handle>[1],
  { policy: { services }, standstill }: { policy: Policy; standstill(): string | undefined },
): Promise<ServiceCaller> {
  const [, token] = /^Bearer ([\x21-\x7e]{1,500})$/i.exec(headers.authorization ?? "") ?? [];
  if (token === undefined) throw unauthorized();
  const given = Buffer.from(`sha256:${hash("sha256", token)}`);
  const isIt = (known: string) => timingSafeEqual(Buffer.from(known), given);
  const [match] = Object.entries(services)
    .flatMap(([service, rule]) =>
      rule.tokens.map((known) => ({ service, rule, isMatch: isIt(known) })),
    )
    .filter((candidate) => candidate.isMatch);
  if (!match) throw unauthorized();
  // The current policy, which this process doesn't have, may have removed this token or narrowed
  // what it sees.
  if (standstill() !== undefined)
    throw new ApiProblem(
      503,
      "This process of Gatehouse doesn't have the current policy; repeat the call.",
    );
  const { service, rule } = match;
  await named(callerName({ service }), rule.limits.requestsPerMinute);
  return { service, rule };
}
