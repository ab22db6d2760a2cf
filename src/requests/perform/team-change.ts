import { ownerOf } from "../../policy/judged.ts";
import { teamsOf } from "../../policy/teams.ts";
import type { Target } from "../../registry/define.ts";
import type { WorkerContext } from "./worker-context.ts";

/**
 * Why a request no longer stands: its project is called otherwise by now, and so has another team. Those who asked and those
 * who approved may have no rights there; someone who has them requests again, and is judged by the new name.
 */
export function teamChange(
  target: Target,
  name: string | undefined,
  { policy }: Pick<WorkerContext, "policy">,
): string | undefined {
  const before = ownerOf(target);
  if (name === undefined || name === before.name) return undefined;
  const [then, now] = [before, { id: before.id, name }].map((one) =>
    teamsOf(policy, one).toSorted().join(" "),
  );
  return then === now
    ? undefined
    : `the project ${before.name ?? before.id} is called ${name} by now and belongs to another team`;
}
