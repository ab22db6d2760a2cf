import * as z from "zod";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { vmCard } from "./vm-card.ts";

export const show = defineCommand({
  kind: "read",
  name: "vm show",
  summary: "Show a VM, with buttons for what can be done",
  example: "/vm show web-1",
  class: "read",
  args: z.object({ vm: target("vm").describe("the VM to show") }),
  async answer(
    { vm: words },
    { compute, inventory, resolve, recentRequests, commands, mayRun, now },
  ) {
    const found = await resolve("vm", words);
    const [vm, open] = await Promise.all([
      compute.vms.get(found.id),
      recentRequests({ targetId: found.id, open: true, most: 3 }),
    ]);
    await inventory.note({ vm });
    return vmCard({
      vm,
      projectName: found.projectName ?? found.projectId,
      open,
      commands,
      mayRun,
      now: now(),
    });
  },
});
