import * as z from "zod";
import { short } from "../../attestation/measurements.ts";
import { namesOf, pinsFor } from "../../attestation/pins.ts";
import { context, message, readable, section, shownTable } from "../../messages/message.ts";
import { duration, md, name, plain } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";

export const pins = defineCommand({
  kind: "read",
  name: "gatehouse pins",
  summary: "Show what VMs are pinned to, in gatehouse.yml and by approval",
  example: "/gatehouse pins",
  class: "read",
  args: z.object({}),
  async answer(_args, { appraiser, policy, now }: ReadContext) {
    const accepted = await appraiser.accepted.all();
    const inFile = policy.attestation.pins;
    const head = md`*Pins*: ${inFile.length} in gatehouse.yml, ${accepted.length} by approval`;
    const values = (pin: string) =>
      pin
        .split(",")
        .map((one) => short(one))
        .join(" ");
    const rows = [
      ...accepted.map((pin) => [
        plain(pin.vm.name, 100),
        values(pin.values),
        whoseWord(pin, pinsFor(inFile, namesOf(pin.vm)).length > 0),
        pin.at > 0 ? `${duration(Math.max(1000, now() - pin.at))} ago` : "",
      ]),
      ...inFile.map(({ targets, measurements }) => [
        targets.join(" "),
        measurements.map(values).join(" or "),
        "gatehouse.yml",
        "",
      ]),
    ];
    if (rows.length === 0) {
      const none = md`Nothing is pinned. ${name("/gatehouse pins propose")} takes what a VM measures now, once others approve it.`;
      return message(readable(none), section(none));
    }
    const { block, shown } = shownTable(["VM", "Values", "By", "Since"], rows);
    return message(
      readable(head),
      section(shown < rows.length ? md`${head}. The first ${shown} are shown.` : head),
      block,
      context(md`Where gatehouse.yml says something of a VM, only that counts.`),
    );
  },
});

function whoseWord(
  { isForged, request, by }: { isForged: boolean; request: string; by: string },
  isInFile: boolean,
): string {
  if (isForged) return "🚨 not in the audit trail: counts for nothing";
  return `${by}, ${request}${isInFile ? "; gatehouse.yml wins" : ""}`;
}
