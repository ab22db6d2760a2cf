import type { Scope } from "../../fleet/inventory/inventory.ts";
import type { Target } from "../../registry/define.ts";
import type { Advice, RemedyPart } from "../alert-part.ts";
import { firingOn } from "./render-alert.ts";
import type { StoredAlert } from "./alerts.ts";

/**
 * Reads what helped before against the alerts of a group that fire on a VM. `scope`: what the
 * readers may see. What can't be read is left out, because an alert must not wait for it.
 */
export async function readAdvice(
  { id, projectName }: Target,
  alert: StoredAlert,
  { remedies, scope }: { remedies: RemedyPart | undefined; scope: Scope | undefined },
): Promise<readonly Advice[]> {
  const names = [...new Set(firingOn(id, alert).map(({ name }) => name))];
  if (names.length === 0) return [];
  const advice = remedies?.advise(id, names, { scope, projectName });
  return (await advice?.catch(() => [])) ?? [];
}
