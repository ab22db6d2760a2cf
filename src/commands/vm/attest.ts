import * as z from "zod";
import { attest as readAttestation, pinsFor } from "../../attestation/appraise.ts";
import { renderAttestation, reportFile } from "../../attestation/render-attestation.ts";
import { UserError } from "../../errors.ts";
import { message, section } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import type { Target } from "../../registry/target.ts";
import type { ReadContext } from "../context.ts";

export const attest = defineCommand({
  kind: "read",
  name: "vm attest",
  aliases: ["verify"],
  summary: "Check a VM's attestation against its record and its pins",
  example: "/vm attest web-1",
  class: "read",
  args: z.object({
    vm: target("vm").describe("the VM to check"),
    raw: z
      .boolean()
      .optional()
      .meta({ flagOnly: true, description: "send the raw report as a file" }),
  }),
  async answer({ vm: words, raw }, context: ReadContext) {
    const vm = await context.resolve("vm", words);
    const { compute, policy, now } = context;
    const pins = pinsFor(policy.attestation.pins, namesOf(vm));
    const read = await readAttestation(vm.id, { compute, now, pins });
    const { appraisal, report } = read;
    if (raw !== true) {
      const value = JSON.stringify({ vm: vm.id, raw: true });
      const offer = { label: "Raw report", action: "run:vm.attest:raw", value };
      return renderAttestation(read.vm, appraisal, report?.report ? [offer] : []);
    }
    if (!report)
      throw new UserError(
        `The compute service returned no report of ${vm.name}.`,
        appraisal.reasons[0],
      );
    const file = reportFile(read.vm, report, appraisal, now());
    return {
      message: message(
        `The raw report of ${vm.name}`,
        section(md`The raw report of ${name(vm.name)} is a file in your direct messages.`),
      ),
      file: { ...file, title: `Attestation report of ${vm.name}` },
    };
  },
});

/** The names by which a pin can match a VM. */
export function namesOf(vm: Target): string[] {
  return [vm.name, vm.id, `${vm.projectName ?? vm.projectId}/${vm.name}`];
}
