import * as z from "zod";
import { type AcceptedPin, type NamedVm, short, namesOf, pinsFor } from "../../attestation/pins.ts";
import { small } from "../../messages/parts.ts";
import { listing, sentence } from "../../messages/card.ts";
import { md, name, plain } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import type { SeenTarget } from "../../core/permit/sight.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../../commands/context.ts";
import { viewLimit } from "../../commands/view-limit.ts";

export const pins = defineCommand({
  name: "gatehouse pins",
  summary: "Show what VMs are pinned to, in gatehouse.yml and by approval",
  example: "/gatehouse pins",
  class: "read",
  args: z.object({}),
  async answer(_args, reading: ReadContext) {
    const { policy } = reading;
    const { accepted, inFile } = await pinsSeen(reading);
    const within = (await viewLimit(reading))?.within ?? "";
    const head = md`*Pins*${within && ` of VMs${within}`}: ${inFile.length} in gatehouse.yml, ${accepted.length} by approval`;
    const values = (pin: string) =>
      pin
        .split(",")
        .map((value) => short(value))
        .join(" ");
    const rows = [
      ...accepted.map((pin) => [
        plain(pin.vm.name, 100),
        values(pin.values),
        whoseWord(pin, pinsFor(policy.attestation.pins, namesOf(pin.vm)).length > 0),
        pin.at > 0 ? { at: pin.at } : "",
      ]),
      ...inFile.map(({ targets, measurements }) => [
        targets.join(" "),
        measurements.map(values).join(" or "),
        "gatehouse.yml",
        "",
      ]),
    ];
    if (rows.length === 0)
      return sentence(
        md`${within ? `No VM${within} is pinned` : "Nothing is pinned"}. ${name("/gatehouse pins propose")} pins a VM's current measurements once others approve them.`,
      );
    const { part, shown } = table("Pins", ["VM", "Values", "By", "Since"], rows);
    const note = small(md`If gatehouse.yml pins a VM, approved pins are ignored.`);
    return listing(head, rows.length, shown, part, note);
  },
});

/**
 * The pins of VMs that the person sees. An approved pin belongs to those who see the VM's project
 * then. Without teams, pins of VMs that are gone are included.
 */
async function pinsSeen({ appraiser, policy, inventory, sees }: ReadContext) {
  const [accepted, inFile] = [await appraiser.accepted.all(), policy.attestation.pins];
  if (Object.keys(policy.teams).length === 0) return { accepted, inFile };
  const vms = await inventory.vms();
  const areSeen = await Promise.all(accepted.map(({ vm }) => sees([seenVm(vm)])));
  // An entry may name VMs of several teams, so targets of other teams are cut out.
  const cut = inFile.map((pin) => {
    const isSeen = (glob: string) =>
      vms.some((vm) => pinsFor([{ ...pin, targets: [glob] }], namesOf(vm)).length > 0);
    return { ...pin, targets: pin.targets.filter(isSeen) };
  });
  return {
    accepted: accepted.filter((_, index) => areSeen[index]),
    inFile: cut.filter(({ targets }) => targets.length > 0),
  };
}

function seenVm({ id, name: called, projectId, projectName }: NamedVm): SeenTarget {
  const project = projectName === undefined ? { projectId } : { projectId, projectName };
  return { kind: "vm", id, name: called, ...project };
}

function whoseWord(
  { standing: kind, request, by: requester }: Pick<AcceptedPin, "standing" | "request" | "by">,
  isInFile: boolean,
): string {
  if (kind === "forged") return "🚨 not kept by Gatehouse: counts for nothing";
  if (kind === "waits") return `${requester}, ${request}; waits to be sealed, counts then`;
  return `${requester}, ${request}${isInFile ? "; gatehouse.yml wins" : ""}`;
}
