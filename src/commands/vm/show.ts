import * as z from "zod";
import { ComputeError, type Vm, unreadable } from "../../fleet/compute/compute.ts";
import { short } from "../../attestation/pins.ts";
import type { Policy } from "../../config/policy-file.ts";
import { failsWords, statusSign } from "../../fleet/inventory/known.ts";
import {
  type ButtonSpec,
  type Markdown,
  type Message,
  buttons,
  context,
  dotted,
  duration,
  fields,
  lines,
  md,
  message,
  name,
  plain,
  readable,
  section,
  utc,
  when,
} from "../../messages/message.ts";
import { isProtected as isProtectedBy } from "../../core/permit/permit.ts";
import { askOnce } from "../../core/permit/refusal.ts";
import {
  type Command,
  type VmCommand,
  defineCommand,
  dottedName,
  runButton,
  target,
  targetArgument,
} from "../../registry/define.ts";
import { recentRequests } from "../../core/request/lists.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords } from "../../core/request/stage.ts";
import { insteadInError, refusedInError } from "../../core/cards/render-result.ts";
import { targetOfVm } from "../../core/submit/resolve-targets.ts";
import { parseTime } from "../../text/parse-time.ts";
import type { ReadContext } from "../context.ts";
import { lastKnown, unlessUnreachable } from "../last-known.ts";
import { isoTime, readAt, vmShape } from "../shapes.ts";
import { sizeWords } from "../specs-words.ts";

export const show = defineCommand({
  name: "vm show",
  inTrouble: true,
  showsVm: true,
  aliases: ["status", "describe", "info", "get"],
  everyday: true,
  summary: "Show a VM, with buttons for what you can do",
  example: "/vm show web-1",
  class: "read",
  args: z.object({ vm: target("vm").describe("the VM to show") }),
  async answer({ vm: words }, context_: ReadContext) {
    const { compute, inventory, drift, resolve, journal, commands, policy, now } = context_;
    const found = await resolve("vm", words);
    const [vm, failing, verifiedAt, open, last] = await Promise.all([
      unlessUnreachable(compute.vms.get(found.id, { onGaps: () => undefined })),
      drift.failing([found.id]),
      drift.verifiedAt(found.id),
      // Without Redis, only the running requests are missing on the card.
      recentRequests({ targetId: found.id, open: true, most: 3 }, journal).catch(() => []),
      recentRequests({ targetId: found.id, most: 10 }, journal).catch(() => []),
    ]);
    if (vm instanceof ComputeError) return lastKnown(found, vm, context_);
    await inventory.note({ vm });
    const projectName = found.projectName ?? found.projectId;
    const failure = failing.get(vm.id);
    const mayRun = (command: Command) => context_.mayRun(command, [found]);
    const isProtected = (command: Command) => isProtectedBy({ command, targets: [found] }, policy);
    const may = { commands, policy, mayRun, isProtected };
    return vmCard({ vm, failure, verifiedAt, projectName, open, last, ...may, now: now() });
  },
  data: {
    at: "/v1/vms/{vm}",
    summary: "Show a VM",
    shape: vmShape.extend(readAt),
    async readData({ vm: words }, { compute, drift, resolve, now }: ReadContext) {
      const { id, projectId, projectName = projectId } = await resolve("vm", words);
      const [vm, failing] = await Promise.all([
        compute.vms.get(id, { onGaps: () => undefined }),
        drift.failing([id]),
      ]);
      return { ...vm, projectName, failsAttestation: failing.get(id), readAt: isoTime(now()) };
    },
  },
});

interface Card {
  vm: Vm;
  /** Why it is known to fail attestation. */
  failure?: string | undefined;
  /** When it was verified, if nothing else came of judging it since (ms). */
  verifiedAt?: number | undefined;
  projectName: string;
  open: readonly StoredRequest[];
  /** The newest requests on the VM, newest first. */
  last?: readonly StoredRequest[] | undefined;
  commands: readonly Command[];
  policy: Pick<Policy, "confirm">;
  mayRun: (command: Command) => boolean;
  /** Whether `protect` in the policy refuses the command for everyone. */
  isProtected?: (command: Command) => boolean;
  now: number;
}

/** One VM, with buttons for what its status allows and this person may do. */
export function vmCard(card: Card): Message {
  const { vm, failure, open, now } = card;
  const { offered, withheld } = choicesOn(card);
  const measurement = vm.attestation?.measurement;
  const [called, status, projectName] = [vm.name, vm.status, card.projectName].map((text) =>
    plain(text),
  );
  return message(
    readable(md`${called} in ${projectName} is ${status}${failsWords(failure)}`),
    section(
      md`${failure ? "🔴" : statusSign(vm.status)} *${called}* is *${status}*${failsWords(failure)}`,
    ),
    fields([
      ["Project", md`${projectName}`],
      ["Region", md`${plain(vm.region ?? "not reported")}`],
      ["Size", md`${sizeWords(vm.specs)}`],
      ["IP address", vm.ipAddress ? name(vm.ipAddress) : md`none`],
      ["Attestation", attestationWords(card)],
      timeField("Created", vm.createdAt),
    ]),
    ...open.slice(0, 3).map((request) => context(runningWords(request, now))),
    withheld.value === "" ? undefined : context(withheld),
    vm.status === unreadable
      ? context(
          md`⚠️ The compute service gives no status of it that can be read. Until it does, nothing is sent to it.`,
        )
      : undefined,
    context(
      dotted(
        md`Read at ${when(now)}`,
        md`ID ${name(vm.id)}`,
        measurement !== undefined && md`measurement ${name(short(measurement))}`,
      ),
    ),
    buttons(lookButtons(card)),
    ...changeButtons(card, offered).map((specs) => buttons(specs)),
  );
}

/** A card's field for an ISO 8601 time, if there is one, in the reader's own zone. */
export function timeField(label: string, time: string | undefined) {
  if (!time) return undefined;
  const at = parseTime(time);
  if (at === undefined) return [label, md`${time}`] as const;
  return [label, when(at, "{date_short} {time}", utc(at))] as const;
}

function attestationWords({ vm: { attestation }, failure, verifiedAt }: Card): Markdown {
  if (failure !== undefined) return md`🔴 failed`;
  if (verifiedAt !== undefined)
    return md`✅ verified ${when(verifiedAt, "{date_short_pretty} {time}", utc(verifiedAt))}`;
  if (attestation?.enabled === undefined) return md`not reported`;
  return attestation.enabled ? md`on, not checked` : md`off`;
}

function runningWords({ record, state }: StoredRequest, now: number): Markdown {
  return md`⏳ ${record.command} (${stateWords(state)}), for ${duration(now - record.createdAt)} (${name(record.id)})`;
}

function lookButtons({ vm, commands, mayRun }: Card): ButtonSpec[] {
  const { id, name: called } = vm;
  const offered = commands.flatMap((command) =>
    command.kind === "read" && command.onCard !== undefined && mayRun(command)
      ? [runButton(command.onCard, dottedName(command), { vm: id }, called)]
      : [],
  );
  return [...offered, runButton("Refresh", "vm.show", { vm: id }, called)];
}

/**
 * The changes that this person may make and that can work in the VM's status, and why others are
 * withheld.
 */
function choicesOn(card: Card) {
  const { vm, commands, mayRun, isProtected = () => false } = card;
  const refused = refusedInError(card);
  const isRefused = (command: VmCommand) => refused.has(command.name) && !isProtected(command);
  const suited = commands.filter(
    (command): command is VmCommand =>
      command.kind === "change" &&
      command.on === "vm" &&
      command.offeredIn?.includes(vm.status) === true &&
      mayRun(command),
  );
  const verbs = (isSo: (command: VmCommand) => boolean) =>
    suited.flatMap((command) => (isSo(command) ? [command.say.verb] : [])).join(", ");
  const [guarded, inError] = [verbs(isProtected), verbs(isRefused)];
  return {
    offered: suited.filter((command) => !isProtected(command) && !isRefused(command)),
    withheld: lines(
      guarded !== "" && md`🔒 Protected in gatehouse.yml, so not from Slack: ${guarded}.`,
      inError !== "" && md`⚠️ *${inError}*: ${insteadInError(commands)}`,
    ),
  };
}

/**
 * Buttons for changes are in a row apart, and those that interrupt or destroy in a row below it,
 * because a thumb slips.
 */
function changeButtons(
  { vm, projectName, policy }: Card,
  offered: readonly VmCommand[],
): ButtonSpec[][] {
  const specOf = (command: VmCommand): ButtonSpec => {
    const { key = "vm", isList } = targetArgument(command) ?? {};
    const input = { [key]: isList ? [vm.id] : vm.id };
    const base = runButton(command.say.verb, dottedName(command), input, vm.name);
    return command.class === "change"
      ? base
      : askOnce({ ...base, style: "danger" }, command, targetOfVm(vm, projectName), policy);
  };
  const of = (...classes: readonly string[]) =>
    classes.flatMap((one) => offered.filter((command) => command.class === one).map(specOf));
  return [of("change"), of("disrupt", "destroy")];
}
