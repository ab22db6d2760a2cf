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
import { type Command, dottedName, type VmCommand } from "../../registry/define.ts";
import { targetArgument } from "../../registry/arguments.ts";
import { type StoredRequest, stateWords } from "../../requests/journal/record.ts";
import { statusSign } from "../../inventory/status-words.ts";
import { specsWords } from "../last-known.ts";

/** One VM, with buttons for what its status allows and this person may do. */
export function vmCard(card: {
  vm: Vm;
  projectName: string;
  open: readonly StoredRequest[];
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
      ["Region", md`${plain(vm.region ?? "not reported")}`],
      ["CPU · memory · disk", md`${specsWords(vm.specs)}`],
      ["IP address", vm.ipAddress ? name(vm.ipAddress) : md`none`],
      ["Attestation", attestationWords(vm)],
      timeField("Created", vm.createdAt),
    ]),
    ...(measurement ? [section(md`Measurement ${name(measurement)}`)] : []),
    ...open.slice(0, 3).map((request) => context(runningWords(request, now))),
    context(md`ID ${name(vm.id)}`),
    buttons(cardButtons(card)),
  );
}

/** A field of a card for an ISO 8601 time, if there is one. */
export function timeField(label: string, time: string | undefined) {
  return time ? ([label, md`${time.slice(0, 16).replace("T", " ")} UTC`] as const) : undefined;
}

function attestationWords({ attestation }: Vm): Markdown {
  if (attestation?.enabled === undefined) return md`not reported`;
  return attestation.enabled ? md`enabled` : md`not enabled`;
}

function runningWords({ record, state }: StoredRequest, now: number): Markdown {
  return md`⏳ ${record.command} (${stateWords(state)}), for ${duration(Math.max(1000, now - record.createdAt))} (${name(record.id)})`;
}

function cardButtons(card: Parameters<typeof vmCard>[0]): ButtonSpec[] {
  const { vm, commands, mayRun } = card;
  const offered = commands.filter(
    (command): command is VmCommand =>
      command.kind === "change" &&
      command.on === "vm" &&
      command.offeredIn?.includes(vm.status) === true &&
      mayRun(command),
  );
  const specs = offered.map((command): ButtonSpec => {
    const { verb } = command.say;
    const { key = "vm", isList } = targetArgument(command) ?? {};
    const value = JSON.stringify({ [key]: isList ? [vm.id] : vm.id });
    const base: ButtonSpec = { label: verb, action: `run:${dottedName(command)}`, value };
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
