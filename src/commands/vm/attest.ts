import * as z from "zod";
import { attest as readAttestation } from "../../attestation/attest.ts";
import { pinsFor } from "../../attestation/pins.ts";
import { renderAttestation } from "../../attestation/render-attestation.ts";
import { reportFile } from "../../attestation/report-file.ts";
import { UserError } from "../../errors.ts";
import { message, section } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { flagOnly, target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import type { Target } from "../../registry/target.ts";

export const attest = defineCommand({
  kind: "read",
  name: "vm attest",
  summary: "Check a VM's attestation against its record and its pins",
  example: "/vm attest web-1",
  class: "read",
  args: z.object({
    vm: target("vm").describe("the VM to check"),
    raw: flagOnly(z.boolean().optional()).meta({
      flagOnly: true,
      description: "send me the raw report as a file",
    }),
  }),
  async answer({ vm: words, raw }, context) {
    const vm = await context.resolve("vm", words);
    const { compute, pins } = context;
    const now = () => context.now();
    const read = await readAttestation(vm.id, { compute, now, pins: pinsFor(pins, namesOf(vm)) });
    const { appraisal, report } = read;
    if (raw !== true) {
      const offer = { label: "Raw report", action: "run:vm.attest:raw", value: rawOf(vm) };
      return renderAttestation(read.vm, appraisal, report?.report ? [offer] : []);
    }
    if (!report)
      throw new UserError(`The service gave no report of ${vm.name}.`, appraisal.reasons[0]);
    const file = reportFile(read.vm, report, appraisal, now());
    return {
      message: message(
        `The raw report of ${vm.name}`,
        section(md`The raw report of ${name(vm.name)} comes as a file in your direct messages.`),
      ),
      file: { ...file, title: `Attestation report of ${vm.name}` },
    };
  },
});

const rawOf = (vm: Target) => JSON.stringify({ vm: vm.id, raw: true });

/** The names by which a pin may speak of a VM. */
function namesOf(vm: Target): string[] {
  return [vm.name, vm.id, `${vm.projectName ?? vm.projectId}/${vm.name}`];
}
