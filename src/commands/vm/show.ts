import * as z from "zod";
import { ComputeError, type Vm } from "../../fleet/compute/compute.ts";
import { short } from "../../attestation/pins.ts";
import type { Policy } from "../../config/policy-file.ts";
import { statusSign } from "../../fleet/inventory/status-order.ts";
import { type Message } from "../../messages/blocks.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { card } from "../../messages/card.ts";
import {
  type Markdown,
  dayAndTime,
  dotted,
  lines,
  md,
  name,
  plain,
  when,
} from "../../messages/markdown.ts";
import { pairsOf } from "../../messages/parts.ts";
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
import { whyVm } from "../../registry/command-buttons.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { type Fact, isFrozenBy, isTrouble, unreadIn } from "../../core/facts/fact.ts";
import { unreadLine } from "../../core/facts/facts-about.ts";
import { recentRequests } from "../../core/request/lists.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { obstacleTo, onVmCard, readForButtons } from "../../core/cards/offered-change.ts";
import { insteadInError, refusedInError } from "../../core/cards/render-result.ts";
import { targetOfVm } from "../../core/submit/resolve-targets.ts";
import { parseTime } from "../../text/parse-time.ts";
import type { ReadContext } from "../context.ts";
import { diagnosis } from "../diagnosis.ts";
import { lastKnown, unlessUnreachable } from "../last-known.ts";
import { isoTime, readAt, vmShape } from "../shapes.ts";
import { sizeWords } from "../specs-words.ts";

export const show = defineCommand({
  name: "vm show",
  aliases: ["status", "describe", "info", "get"],
  roles: ["everyday", "shows-vm"],
  summary: "Show a VM, with buttons for what you can do",
  example: "/vm show web-1",
  class: "read",
  args: z.object({ vm: target("vm").describe("the VM to show") }),
  async answer({ vm: words }, context_: ReadContext) {
    const { compute, inventory, factsAbout, resolve, journal, commands, policy, now } = context_;
    const namedVm = await resolve("vm", words);
    const vm = await unlessUnreachable(compute.vms.get(namedVm.id, { onGaps: () => undefined }));
    if (vm instanceof ComputeError) return lastKnown(namedVm, vm, context_);
    const known = { ...namedVm, status: vm.status, updatedAt: vm.updatedAt };
    const [facts, last] = await Promise.all([
      factsAbout([known], { reader: context_ }),
      recentRequests({ targetId: namedVm.id, most: readForButtons }, journal).catch(() => []),
      inventory.note({ vm }),
    ]);
    const projectName = namedVm.projectName ?? namedVm.projectId;
    const mayRun = (command: Command) => context_.mayRun(command, [namedVm]);
    const may = { commands, policy, mayRun };
    const hasWhy = diagnosis.ifAny(context_) !== undefined;
    const state = { vm, facts, last, hasWhy };
    return vmCard({ ...state, projectName, ...may, now: now() });
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

interface ShownVm {
  vm: Vm;
  /** The most urgent first. */
  facts: readonly Fact[];
  projectName: string;
  /** The newest requests on the VM, newest first. */
  last?: readonly StoredRequest[] | undefined;
  /** Whether something can say what is wrong with the VM. */
  hasWhy?: boolean;
  commands: readonly Command[];
  policy: Pick<Policy, "confirm" | "protect">;
  mayRun: (command: Command) => boolean;
  now: number;
}

/** At most this many troubles are on the card. *Why?* tells all. */
const mostTroubles = 3;

/**
 * One VM with what is wrong with it, and buttons for what its status allows and this person may do.
 */
export function vmCard(shown: ShownVm): Message {
  const { vm, facts, now } = shown;
  const { offered, withheld } = choicesOn(shown);
  const measurement = vm.attestation?.measurement;
  const [called, status, projectName] = [vm.name, vm.status, shown.projectName].map((text) =>
    plain(text),
  );
  const troubles = facts.filter(isTrouble);
  const alarm = troubles.find(({ severity }) => severity === "alarm");
  const more = troubles.length - mostTroubles;
  return card({
    sign: alarm?.sign ?? statusSign(vm.status),
    title: md`*${called}* is *${status}*`,
    push: md`${called} in ${projectName} is ${status}${alarm ? md`. ${alarm.text}` : ""}`,
    lines: [
      ...troubles.slice(0, mostTroubles).map(({ sign, text }) => md`${sign} ${text}`),
      more > 0 && md`… and ${more} more`,
    ],
    body: [
      pairsOf([
        ["Project", md`${projectName}`],
        ["Region", md`${plain(vm.region ?? "not reported")}`],
        ["Size", md`${sizeWords(vm.specs)}`],
        ["IP address", vm.ipAddress ? name(vm.ipAddress) : md`none`],
        ["Attestation", attestationWords(shown)],
        timeField("Created", vm.createdAt),
      ]),
    ],
    meta: [
      ...factsOf("under way", facts)
        .slice(0, mostUnderWay)
        .map(({ sign, text }) => md`${sign} ${text}`),
      withheld,
      ...factsOf("freeze", facts).map(({ sign, text, next }) => md`${sign} ${text} ${next ?? ""}`),
      unreadLine(unreadIn(facts)),
      dotted(
        md`Read at ${when(now)}`,
        md`ID ${name(vm.id)}`,
        measurement !== undefined && md`measurement ${name(short(measurement))}`,
      ),
    ],
    ways: [lookButtons(shown), ...changeButtons(shown, offered)],
  });
}

const mostUnderWay = 3;

const factsOf = (kind: string, facts: readonly Fact[]): readonly Fact[] =>
  facts.filter((fact) => fact.kind === kind);

/** A card's field for an ISO 8601 time, if there is one, in the reader's own zone. */
export function timeField(label: string, time: string | undefined) {
  if (!time) return undefined;
  const at = parseTime(time);
  if (at === undefined) return [label, md`${time}`] as const;
  return [label, when(at, "{date_short} {time}")] as const;
}

function attestationWords({ vm: { attestation }, facts }: ShownVm): Markdown {
  if (factsOf("attestation", facts).length > 0) return md`🔴 failed`;
  if (factsOf("unverified", facts).length > 0) return md`❔ can't be verified`;
  const [verified] = factsOf("verified", facts);
  if (verified?.since !== undefined) return md`✅ verified ${dayAndTime(verified.since)}`;
  if (attestation?.enabled === undefined) return md`not reported`;
  return attestation.enabled ? md`on, not checked` : md`off`;
}

function lookButtons({ vm, facts, commands, mayRun, hasWhy }: ShownVm): ButtonSpec[] {
  const { id, name: called } = vm;
  const requestReader = commandWithRole(commands, "shows-request");
  const explains = requestReader !== undefined && mayRun(requestReader);
  const offered = commands.flatMap((command) =>
    command.kind === "read" && command.onCard !== undefined && mayRun(command)
      ? [runButton(command.onCard, dottedName(command), { vm: id }, called)]
      : [],
  );
  const why = facts.some(isTrouble) && hasWhy === true && explains ? [whyVm(vm)] : [];
  return [...why, ...offered, runButton("Refresh", "vm.show", { vm: id }, called)];
}

/**
 * The changes that this person may make and that can work in the VM's status, and why others are
 * withheld.
 */
function choicesOn({ vm, facts, last, projectName, commands, mayRun, policy }: ShownVm) {
  const situation = {
    target: targetOfVm(vm, projectName),
    refused: refusedInError({ vm, last }),
    isFrozen: isFrozenBy(facts),
    policy,
  };
  const suited = commands.filter(onVmCard).filter((command) => mayRun(command));
  const thoseWith = (obstacle: ReturnType<typeof obstacleTo>) =>
    suited.filter((command) => obstacleTo(command, situation) === obstacle);
  const verbs = (those: readonly VmCommand[]) => those.map(({ say }) => say.verb).join(", ");
  const guarded = verbs(thoseWith("protected"));
  const inError = verbs(thoseWith("refused"));
  return {
    offered: thoseWith(undefined),
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
  { vm, projectName, policy }: ShownVm,
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
    classes.flatMap((commandClass) =>
      offered.filter((command) => command.class === commandClass).map(specOf),
    );
  return [of("change"), of("disrupt", "destroy")];
}
