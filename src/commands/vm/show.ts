import * as z from "zod";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { recentRequests } from "../../requests/journal/lists.ts";
import type { ReadContext } from "../context.ts";
import { lastKnown, unlessUnreachable } from "../last-known.ts";
import { vmCard } from "./vm-card.ts";

export const show = defineCommand({
  kind: "read",
  name: "vm show",
  aliases: ["status", "describe", "info", "get"],
  everyday: true,
  summary: "Show a VM, with buttons for what you can do",
  example: "/vm show web-1",
  class: "read",
  args: z.object({ vm: target("vm").describe("the VM to show") }),
  async answer(
    { vm: words },
    { compute, inventory, resolve, journal, commands, mayRun, now }: ReadContext,
  ) {
    const found = await resolve("vm", words);
    const [vm, open, last] = await Promise.all([
      unlessUnreachable(compute.vms.get(found.id)),
      // Without Redis the card lacks only the running requests
      recentRequests({ targetId: found.id, open: true, most: 3 }, journal).catch(() => []),
      recentRequests({ targetId: found.id, most: 10 }, journal).catch(() => []),
    ]);
    if (!vm) return lastKnown(found, { inventory, now });
    await inventory.note({ vm });
    return vmCard({
      vm,
      projectName: found.projectName ?? found.projectId,
      open,
      last,
      commands,
      mayRun,
      now: now(),
    });
  },
});
