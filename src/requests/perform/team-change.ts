import { ownerOf } from "../../policy/judged.ts";
import { teamsOf } from "../../policy/teams.ts";
import type { RequestRecord } from "../journal/record.ts";
import type { WorkerContext } from "./worker-context.ts";

/**
 * Why a request no longer stands: its project has another name by now, and so another team. Those who asked and those who
 * approved may have no rights there; someone who has them requests again, and is judged by the new name.
 */
export async function teamChange(
  { target }: Pick<RequestRecord, "target">,
  { policy, projectName }: Pick<WorkerContext, "policy" | "projectName">,
): Promise<string | undefined> {
  const before = ownerOf(target);
  const name = before.id === "" ? undefined : await projectName(before.id);
  if (name === undefined || name === before.name) return undefined;
  const [then, now] = [before, { id: before.id, name }].map((one) =>
    teamsOf(policy, one).toSorted().join(" "),
  );
  return then === now
    ? undefined
    : `the project ${before.name ?? before.id} is called ${name} by now and belongs to another team`;
}
