import * as z from "zod";
import { usageCharts, usageWords, valuesNow } from "../../fleet/charts/chart.ts";
import { shortNumber } from "../../text/short-number.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { card } from "../../messages/card.ts";
import { dotted, md, name } from "../../messages/markdown.ts";
import { changesThatHelp, situationOf } from "../../core/cards/offered-change.ts";
import { targetButton } from "../../core/cards/target-button.ts";
import { type Target, target, defineCommand, runButton } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";
import { metricsShape } from "../shapes.ts";

/** Offered as buttons. The compute service documents only the first, and may refuse others. */
const periods = ["1h", "6h", "24h", "7d"];

export const metrics = defineCommand({
  name: "vm metrics",
  aliases: ["stats", "usage"],
  roles: ["everyday"],
  summary: "Show CPU, memory and disk use of a VM as a chart",
  example: "/vm metrics web-1 1h",
  class: "read",
  onCard: "Metrics",
  args: z.object({
    vm: target("vm").describe("the VM to measure"),
    period: z
      .string()
      .min(1)
      .max(40, { error: "must be at most 40 characters" })
      .default("1h")
      .describe("how far back, as the compute service takes it: 1h"),
  }),
  async answer({ vm: words, period }, reading: ReadContext) {
    const { resolve, compute, person } = reading;
    const vm = await resolve("vm", words);
    const usage = await compute.vms.metrics(vm.id, period);
    const isEmpty = usage.cpuUsage.length === 0 && usage.memoryUsage.length === 0;
    const title = isEmpty
      ? md`${name(vm.name)} has no samples of CPU or memory for ${name(period)}; it is ${vm.status}.`
      : md`CPU and memory of ${name(vm.name)}, last ${name(period)}.`;
    const now = valuesNow(usage).map(([label, value]) => md`${label} *${shortNumber(value)}*`);
    const values = md`Now: ${dotted(...now)} (unit not given by the service)`;
    const periodButtons = periods.map((choice) => {
      const label = choice === period ? "Refresh" : choice;
      return runButton(
        label,
        `vm.metrics:${choice}`,
        { vm: vm.id, period: choice },
        `of ${vm.name}`,
      );
    });
    return card({
      title,
      push: md`${title} ${usageWords(usage, person.timeZone)}`,
      lines: [now.length > 0 && values],
      body: [usageCharts(usage, `${vm.name}, last ${period}`, person.timeZone)],
      ways: [periodButtons, await remedies(vm, reading)],
    });
  },
  data: {
    at: "/v1/vms/{vm}/metrics",
    summary: "Show CPU, memory and disk use of a VM over time",
    shape: metricsShape,
    async readData({ vm: words, period }, { resolve, compute }: ReadContext) {
      const { id: vmId } = await resolve("vm", words);
      return { vmId, period, ...(await compute.vms.metrics(vmId, period)) };
    },
  },
});

/** Buttons of the changes that help the VM now, as far as this person may make them. */
async function remedies(vm: Target, reading: ReadContext): Promise<ButtonSpec[]> {
  const { commands, policy, mayRun, journal: store } = reading;
  const situation = await situationOf(vm, { store, policy });
  const helping = changesThatHelp(situation, commands, (command) => mayRun(command, [vm]));
  return helping.map((command) => targetButton(command, {}, vm, policy));
}
