import { randomBytes } from "node:crypto";
import * as z from "zod";
import { attest } from "../../attestation/attest.ts";
import { pinsFor } from "../../attestation/pins.ts";
import { UserError } from "../../errors.ts";
import { buttons, context, message, section } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { flagOnly, target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";

/** How long the button may be pressed (ms). Later the measurement, or who may, could be another. */
const offeredForMs = 60_000;

export const console = defineCommand({
  kind: "read",
  name: "vm console",
  summary: "Open a console on a VM, for you alone",
  example: "/vm console web-1",
  class: "secret",
  args: z.object({
    vm: target("vm").describe("the VM to open it on"),
    insist: flagOnly(z.string().min(3).max(300).optional()).meta({
      flagOnly: true,
      description:
        "for administrators: why it must be opened although the measurement doesn't match",
    }),
  }),
  async answer({ vm: words, insist }, { compute, pins, resolve, control, now, person }) {
    const vm = await resolve("vm", words);
    const names = [vm.name, vm.id, `${vm.projectName ?? vm.projectId}/${vm.name}`];
    const allowed = pinsFor(pins, names);
    const { appraisal } = await attest(vm.id, { compute, pins: allowed, now });
    const isDrifted = allowed.length > 0 && appraisal.measurement.matchesPin !== true;
    if (isDrifted && insist === undefined) {
      throw new UserError(
        `No console on ${vm.name}: its measurement doesn't match its pin, so what answers there may not be what you think.`,
        `\`/vm attest ${vm.name}\` shows the difference. An administrator may insist: \`/vm console ${vm.name} --insist "why"\`.`,
      );
    }
    if (isDrifted) control.mustAdminister();
    const value = JSON.stringify({
      vm: vm.id,
      for: person.id,
      until: now() + offeredForMs,
      once: randomBytes(9).toString("base64url"),
      ...(isDrifted ? { insist } : {}),
    });
    const text = md`A console on ${name(vm.name)} gives whoever holds its address the machine. It is shown to you alone, once, for a short time, and the channel is told that you opened it.`;
    return message(
      `Open a console on ${vm.name}?`,
      section(text),
      ...(isDrifted
        ? [context(md`⚠️ Its measurement doesn't match its pin. Your reason will be recorded.`)]
        : []),
      buttons([{ label: "Open console", action: "console:open", value, style: "danger" }]),
    );
  },
});
