import * as z from "zod";
import { UserError } from "../../errors.ts";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { lastKnown, unlessAway } from "../last-known.ts";
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
      unlessAway(compute.vms.get(found.id)),
      // While Redis is away it can't be told what is under way: the rest can
      recentRequests({ targetId: found.id, open: true, most: 3 }).catch(() => []),
    ]);
    if (!vm) {
      const known = await inventory.findVm(found.id);
      if ("found" in known) return lastKnown(known.found, await inventory.state(), now());
      throw new UserError(`The service can't be reached, and I know nothing of ${found.name}.`);
    }
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
