import type { Vm } from "../../compute/compute.ts";
import {
  type ButtonSpec,
  buttons,
  context,
  fields,
  message,
  type Message,
  readable,
  section,
} from "../../messages/message.ts";
import { duration, type Markdown, md, name, plain } from "../../messages/text.ts";
import type { ChangeCommand, Command, RequestSummary } from "../../registry/define.ts";
import { stateWords } from "../state-words.ts";
import { statusSign } from "../status-words.ts";

/** One VM at a glance, with buttons for what its state allows and this person may do. */
export function vmCard(card: {
  vm: Vm;
  projectName: string;
  open: readonly RequestSummary[];
  commands: readonly Command[];
  mayRun: (command: Command) => boolean;
  now: number;
}): Message {
  const { vm, open, now } = card;
  const measurement = vm.attestation?.measurement;
  const [called, status, projectName] = [vm.name, vm.status, card.projectName].map((text) =>
    plain(text),
  );
  return message(
    readable(md`${called} in ${projectName} is ${status}`),
    section(md`${statusSign(vm.status)} *${called}* is *${status}*`),
    fields([
      ["Project", md`${projectName}`],
      ["Region", md`${plain(vm.region ?? "not told")}`],
      [
        "CPU · memory · disk",
        md`${[vm.specs?.cpu, vm.specs?.memory, vm.specs?.disk].map((n) => n ?? "?").join(" · ")}`,
      ],
      ["IP address", vm.ipAddress ? name(vm.ipAddress) : md`none`],
      ["Attestation", attestationWords(vm)],
      vm.createdAt
        ? ["Created", md`${vm.createdAt.slice(0, 16).replace("T", " ")} UTC`]
        : undefined,
    ]),
    ...(measurement ? [section(md`Measurement ${name(measurement)}`)] : []),
    ...open.slice(0, 3).map((request) => context(runningWords(request, now))),
    context(md`Id ${name(vm.id)}`),
    buttons(cardButtons(card)),
  );
}

function attestationWords({ attestation }: Vm): Markdown {
  if (attestation?.enabled === undefined) return md`not told`;
  return attestation.enabled ? md`enabled` : md`not enabled`;
}

function runningWords(request: RequestSummary, now: number): Markdown {
  return md`⏳ ${request.command} (${stateWords(request.state)}), for ${duration(Math.max(1000, now - request.createdAt))} (${name(request.id)})`;
}

function cardButtons(card: Parameters<typeof vmCard>[0]): ButtonSpec[] {
  const { vm, commands, mayRun } = card;
  const offered = commands.filter(
    (command): command is ChangeCommand & { on: "vm" } =>
      command.kind === "change" &&
      command.on === "vm" &&
      command.offeredIn?.includes(vm.status) === true &&
      mayRun(command),
  );
  const specs = offered.map((command): ButtonSpec => {
    const { verb } = command.say;
    const key = "vms" in command.args.shape ? "vms" : "vm";
    const value = JSON.stringify({ [key]: key === "vms" ? [vm.id] : vm.id });
    const base: ButtonSpec = {
      label: verb,
      action: `run:${command.name.replaceAll(" ", ".")}`,
      value,
    };
    if (command.class !== "disrupt" || command.dialog) return base;
    return {
      ...base,
      confirm: {
        title: `${verb} ${plain(vm.name, 80)}?`,
        text: `${plain(vm.name, 80)} is ${plain(vm.status, 40)} now. What runs on it is interrupted.`,
        confirm: verb,
        style: "danger",
      },
    };
  });
  return [
    ...specs,
    { label: "Refresh", action: "run:vm.show", value: JSON.stringify({ vm: vm.id }) },
  ];
}
