import { boot, type SandboxProject, type VmSpecs, Refusal } from "./records.ts";
import type { Fate, Operation, World } from "./world.ts";

export type ProjectOperations = ReturnType<typeof createProjectOperations>;

/** What the API can do to a project and with it to its VMs. */
export function createProjectOperations(world: World, msOf: (operation: Operation) => number) {
  return {
    createProject(
      input: { name: string; type: string; region: string; specs?: VmSpecs; gitConfig?: object },
      fate: Fate = {},
    ) {
      const project = world.addProject({ ...input, status: "CREATING" });
      project.creations = 1;
      const vm =
        input.type === "TEE_VM"
          ? world.addVm({
              projectId: project.id,
              name: `${input.name}-1`,
              status: "CREATING",
              specs: input.specs,
            })
          : undefined;
      if (vm) vm.busy = true;
      if (fate.stuck) return project;
      world.after(msOf("create"), () => {
        if (project.status !== "CREATING") return;
        project.status = fate.goesTo ?? "ACTIVE";
        project.updatedAt = Date.now();
        if (!vm) return;
        vm.busy = false;
        vm.status = fate.goesTo ?? "RUNNING";
        vm.bootedAt = Date.now();
      });
      return project;
    },

    /** A new name at once; new specs restart the project's running VMs. */
    updateProject(
      project: SandboxProject,
      change: { name?: string; specs?: Partial<VmSpecs> },
      fate: Fate = {},
    ) {
      const vms = project.vmIds.flatMap((id) => world.vms.get(id) ?? []);
      if (project.status === "DELETING")
        return new Refusal(409, "conflict", `${project.name} is being deleted`);
      if (change.specs && vms.some((vm) => vm.busy))
        return new Refusal(409, "conflict", `${project.name} has a busy VM`);
      project.updates += 1;
      project.updatedAt = Date.now();
      if (change.name !== undefined) project.name = change.name;
      if (!change.specs) return project;
      const specs = change.specs;
      project.specs = { cpu: 4, memory: 16, disk: 100, ...project.specs, ...specs };
      for (const vm of vms.filter((each) => each.status === "RUNNING")) {
        vm.busy = true;
        vm.status = "REBOOTING";
        if (!fate.stuck) {
          world.after(msOf("update"), () => {
            vm.busy = false;
            if (vm.status === "DELETING") return;
            vm.status = fate.goesTo ?? "RUNNING";
            vm.specs = { ...vm.specs, ...specs };
            boot(vm);
          });
        }
      }
      return project;
    },

    deleteProject(project: SandboxProject, fate: Fate = {}) {
      if (project.status === "DELETING")
        return new Refusal(409, "conflict", `${project.name} is being deleted already`);
      project.deletions += 1;
      project.status = "DELETING";
      for (const id of project.vmIds) {
        const vm = world.vms.get(id);
        if (vm) vm.status = "DELETING";
      }
      if (!fate.stuck) {
        world.after(msOf("delete"), () => {
          if (fate.goesTo === undefined) world.removeProject(project);
          else project.status = fate.goesTo;
        });
      }
      return project;
    },
  };
}
