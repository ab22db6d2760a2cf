import type { Project } from "../../compute/compute.ts";
import { isSettledProjectStatus } from "../../compute/settle.ts";
import type { Refusal } from "../../registry/define.ts";

/** Refuses while it is being deleted, and in a status that we don't know. CREATING passes: the gate waits it out. */
export function notChangeable(project: Project): Refusal | undefined {
  if (project.status === "DELETING") return { text: `${project.name} is being deleted already.` };
  if (isSettledProjectStatus(project.status) || project.status === "CREATING") return undefined;
  return {
    text: `${project.name} is ${project.status}, which I don't know.`,
    hint: "Nothing was sent. Look at it in the service's own console.",
  };
}
