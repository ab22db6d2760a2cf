import { type Permit, type Restoring, raiseForRestore } from "../core/permit/permit.ts";
import type { DialogFacts } from "../registry/define.ts";
import { authorizeTargets } from "./authorize.ts";
import { chosenSnapshot } from "../core/submit/chosen-snapshot.ts";
import type { GatewayContext } from "./gateway-context.ts";

/**
 * Adds an approval if these facts say that a restore would change the measurement or use an old
 * snapshot.
 */
export function raiseByFacts(permit: Permit, facts: DialogFacts, { now }: { now(): number }) {
  return raiseForRestore(permit, restoringOf(facts, now()));
}

/**
 * Decides the permit again by what was read since: the VMs that a project has now, and what a
 * restore would bring back.
 */
export async function permitByFacts(
  given: Permit,
  facts: DialogFacts,
  gateway: GatewayContext,
): Promise<Permit> {
  const { asking, command, targets, input } = given;
  if (command.on !== "project") return raiseByFacts(given, facts, gateway);
  const about = { targets, input, vms: facts.vms };
  return raiseByFacts(await authorizeTargets(asking, about, gateway), facts, gateway);
}

/**
 * The snapshot that a restore would bring back and the measurement now, as far as these facts say.
 */
export function restoringOf(facts: DialogFacts, now: number): Restoring {
  const { seen } = facts;
  return {
    snapshot: chosenSnapshot(facts),
    measurementNow: seen && "projectId" in seen ? seen.attestation?.measurement : undefined,
    now,
  };
}
