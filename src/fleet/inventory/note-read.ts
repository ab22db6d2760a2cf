import { asCalledBefore, contentsOf, withReadVm } from "./contents.ts";
import type { NotedRead } from "./inventory.ts";
import type { Replica } from "./replica.ts";

/**
 * Adds what was just read to the inventory. Never rejects. When Redis is unavailable, this process
 * knows the change, and the next refresh tells the others.
 */
export async function noteRead(
  { vm, project, goneProjectId }: NotedRead,
  { replica }: { replica: Replica },
): Promise<void> {
  if (project)
    await replica.change(project.id, (now) => {
      const namedProject = asCalledBefore({ ...now?.project, ...project }, now?.project);
      return contentsOf(namedProject, now?.vms ?? [], now?.gaps);
    });
  // A VM of an unknown project waits for the next refresh, because it can't be shown without the
  // project's name.
  if (vm)
    await replica.change(
      vm.projectId,
      (now) => now && contentsOf(now.project, withReadVm(vm, now.vms), now.gaps),
    );
  if (goneProjectId !== undefined) await replica.change(goneProjectId, () => undefined);
}
