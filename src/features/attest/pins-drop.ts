import * as z from "zod";
import { pinChange } from "../../attestation/pins.ts";
import { measurement } from "../../config/policy-values.ts";
import { md } from "../../messages/markdown.ts";
import { target, defineCommand } from "../../registry/define.ts";
import { pinRequest, reason } from "./pins-propose.ts";

export const pinsDrop = defineCommand({
  ...pinRequest,
  name: "gatehouse pins drop",
  summary: "Drop a VM's approved pin",
  example: "/gatehouse pins drop db-1",
  args: z.object({
    vm: target("vm").describe("the VM whose pin was approved"),
    why: reason,
    values: z
      .string()
      .max(600)
      .optional()
      .meta({ isFlag: true, description: "the pin you mean; refused if it is another" }),
  }),
  say: {
    verb: "Unpin",
    doing: "Unpinning",
    done: "Unpinned",
    infinitive: (vm) => `drop the pin of ${vm}`,
  },
  risk: ({ target: vm }) => [
    md`🚨 *Without a pin, nothing says what ${vm.name} may run*, and rollouts and consoles no longer require a match.`,
  ],
  keeps: {
    async prepare(vm, { values: expected }, { appraiser }) {
      const kept = await appraiser.accepted.of(vm.id);
      if (!kept) {
        const { from, line = "" } = await appraiser.pinsOf(vm);
        const where = from === "gatehouse.yml" ? `; gatehouse.yml pins it${line}` : "";
        return { kind: "no", why: { text: `there is no approved pin for ${vm.name}${where}` } };
      }
      if (expected !== undefined && measurement.safeParse(expected).data !== kept.values)
        return {
          kind: "no",
          why: { text: `the pin of ${vm.name} has changed`, hint: kept.values },
        };
      const facts = pinChange(kept.values, kept.values).map(
        ([label, text]) => [label, text.replace(", unchanged", ", no longer pinned")] as const,
      );
      return { kind: "ready", values: kept.values, facts };
    },
    pin: () => undefined,
  },
});
