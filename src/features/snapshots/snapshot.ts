import { fold } from "../../text/fold.ts";
import * as z from "zod";
import { md, name as code, dayAndTime } from "../../messages/markdown.ts";
import { targetOrSeveral, defineCommand } from "../../registry/define.ts";
import { unknownStatus } from "../../commands/effects.ts";

export const snapshot = defineCommand({
  on: "vm",
  name: "vm snapshot",
  summary: "Take a snapshot of a VM",
  example: "/vm snapshot db-1 before-upgrade",
  class: "change",
  protect: false,
  attestAfter: false,
  snapshot: "takes",
  args: z.object({
    vm: targetOrSeveral("vm").describe("the VM; several with commas or as a glob"),
    name: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe("its name; by default the VM's name and the time"),
  }),
  next: [{ label: "Snapshots", command: "vm.snapshots" }],
  say: {
    verb: "Snapshot",
    doing: "Taking a snapshot of",
    done: "Took a snapshot of",
    detail: ({ name }) => (typeof name === "string" ? `as ${name}` : undefined),
  },
  offeredIn: ["RUNNING", "STOPPED"],
  effect: {
    notNow: (vm) => unknownStatus(vm),
    // The compute service can't list snapshots, so its answer is the only proof.
    provenBy: () => true,
    wanted: () => false,
  },
  addToResult(_before, _after, { name }, { snapshotId, claimed }) {
    if (snapshotId !== undefined) return md`Its ID is ${code(snapshotId)}.`;
    const called = name === undefined ? "" : ` ${name}`;
    if (claimed)
      return md`Its ID is ${code(claimed.id)}, says ${claimed.by}. It can be restored by its name${called} once someone who sees every VM has confirmed that.`;
    return md`The compute service returned no ID, so it can't be restored by its name${called}.`;
  },
  async caution({ name: called }, vm, { snapshots }) {
    if (typeof called !== "string") return undefined;
    const twin = (await snapshots.of(vm.id)).find(
      (candidate) => fold(candidate.name) === fold(called),
    );
    return (
      twin &&
      md`⚠️ ${code(vm.name)} already has a snapshot called ${called}, taken ${dayAndTime(twin.at)}. This one gets the same name: only the time tells them apart.`
    );
  },
  fillIn: (input, vm, at) => ({ ...input, name: input["name"] ?? defaultName(vm.name, at) }),
  perform: (vm, { name }, { compute }) =>
    compute.vms.snapshot(vm.id, name ?? defaultName(vm.name, new Date())),
});

/** The default name of a snapshot, in UTC: `db-1-20261120-0312`. */
export function defaultName(vmName: string, at: Date): string {
  const digits = at.toISOString().replaceAll(/\D/g, "");
  return `${vmName.slice(0, 80)}-${digits.slice(0, 8)}-${digits.slice(8, 12)}`;
}
