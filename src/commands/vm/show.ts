import * as z from "zod";
import { ComputeError, type Vm, statusFacts, unreadable } from "../../fleet/compute/compute.ts";
import { short } from "../../attestation/pins.ts";
import type { Policy } from "../../config/policy-file.ts";
import { failsWords, statusSign } from "../../fleet/inventory/known.ts";
import { type Message, fields } from "../../messages/blocks.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { card } from "../../messages/card.ts";
import {
  type Markdown,
  dayAndTime,
  dotted,
  duration,
  lines,
  md,
  name,
  plain,
  when,
  withFullStop,
} from "../../messages/markdown.ts";
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
import type { Freeze } from "../../core/request/freeze.ts";
import { recentRequests } from "../../core/request/lists.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords } from "../../core/request/stage.ts";
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
    const [vm, failing, verifiedAt, freeze, open, last] = await Promise.all([
      unlessUnreachable(compute.vms.get(found.id, { onGaps: () => undefined })),
      drift.failing([found.id]),
      drift.verifiedAt(found.id),
      journal.freezeState().catch(() => undefined),
      // Without Redis, only the running requests are missing on the card.
      recentRequests({ targetId: found.id, open: true, most: 3 }, journal).catch(() => []),
      recentRequests({ targetId: found.id, most: readForButtons }, journal).catch(() => []),
    ]);
    if (vm instanceof ComputeError) return lastKnown(found, vm, context_);
    await inventory.note({ vm });
    const projectName = found.projectName ?? found.projectId;
    const failure = failing.get(vm.id);
    const mayRun = (command: Command) => context_.mayRun(command, [found]);
    const may = { commands, policy, mayRun };
    const hasWhy = diagnosis.ifAny(context_) !== undefined;
    const state = { vm, failure, verifiedAt, open, last, freeze, hasWhy };
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

interface VmFacts {
  vm: Vm;
  /** Why it is known to fail attestation. */
  failure?: string | undefined;
  /** When it was verified, if nothing else came of judging it since (ms). */
  verifiedAt?: number | undefined;
  projectName: string;
  open: readonly StoredRequest[];
  /** The newest requests on the VM, newest first. */
  last?: readonly StoredRequest[] | undefined;
  /** While it stands, the card offers no change. */
  freeze?: Freeze | undefined;
  /** Whether something can say what is wrong with the VM. */
  hasWhy?: boolean;
  commands: readonly Command[];
  policy: Pick<Policy, "confirm" | "protect">;
  mayRun: (command: Command) => boolean;
  now: number;
}

/** One VM, with buttons for what its status allows and this person may do. */
export function vmCard(facts: VmFacts): Message {
  const { vm, failure, open, freeze, now } = facts;
  const { offered, withheld } = choicesOn(facts);
  const measurement = vm.attestation?.measurement;
  const [called, status, projectName] = [vm.name, vm.status, facts.projectName].map((text) =>
    plain(text),
  );
  return card({
    sign: failure ? "🔴" : statusSign(vm.status),
    title: md`*${called}* is *${status}*${failsWords(failure)}`,
    push: md`${called} in ${projectName} is ${status}${failsWords(failure)}`,
    body: [
      fields([
        ["Project", md`${projectName}`],
        ["Region", md`${plain(vm.region ?? "not reported")}`],
        ["Size", md`${sizeWords(vm.specs)}`],
        ["IP address", vm.ipAddress ? name(vm.ipAddress) : md`none`],
        ["Attestation", attestationWords(facts)],
        timeField("Created", vm.createdAt),
      ]),
    ],
    meta: [
      ...open.slice(0, 3).map((request) => runningWords(request, now)),
      withheld,
      freeze && frozenLine(freeze),
      vm.status === unreadable &&
        md`⚠️ The compute service gives no status of it that can be read. Until it does, nothing is sent to it.`,
      dotted(
        md`Read at ${when(now)}`,
        md`ID ${name(vm.id)}`,
        measurement !== undefined && md`measurement ${name(short(measurement))}`,
      ),
    ],
    ways: [lookButtons(facts), ...changeButtons(facts, offered)],
  });
}

/** `🧊 ada froze all changes at 11:54 AM: storage is failing`, in place of the changes. */
const frozenLine = ({ by, at, reason }: Freeze): Markdown =>
  md`${withFullStop(md`🧊 ${by} froze all changes at ${when(at, "{time}")}${reason && `: ${reason}`}`)} Until that ends, no changes.`;

/** A card's field for an ISO 8601 time, if there is one, in the reader's own zone. */
export function timeField(label: string, time: string | undefined) {
  if (!time) return undefined;
  const at = parseTime(time);
  if (at === undefined) return [label, md`${time}`] as const;
  return [label, when(at, "{date_short} {time}")] as const;
}

function attestationWords({ vm: { attestation }, failure, verifiedAt }: VmFacts): Markdown {
  if (failure !== undefined) return md`🔴 failed`;
  if (verifiedAt !== undefined) return md`✅ verified ${dayAndTime(verifiedAt)}`;
  if (attestation?.enabled === undefined) return md`not reported`;
  return attestation.enabled ? md`on, not checked` : md`off`;
}

function runningWords({ record, state }: StoredRequest, now: number): Markdown {
  return md`⏳ ${record.command} (${stateWords(state)}), for ${duration(now - record.createdAt)} (${name(record.id)})`;
}

function lookButtons(facts: VmFacts): ButtonSpec[] {
  const { vm, commands, mayRun } = facts;
  const { id, name: called } = vm;
  const explains = commands.some((one) => one.kind === "read" && one.readsRequests && mayRun(one));
  const offered = commands.flatMap((command) =>
    command.kind === "read" && command.onCard !== undefined && mayRun(command)
      ? [runButton(command.onCard, dottedName(command), { vm: id }, called)]
      : [],
  );
  const why = isRed(facts) && facts.hasWhy === true && explains ? [whyVm(vm)] : [];
  return [...why, ...offered, runButton("Refresh", "vm.show", { vm: id }, called)];
}

const isRed = ({ vm, failure, open }: VmFacts): boolean =>
  failure !== undefined ||
  statusFacts(vm.status).isAlarming ||
  open.some(({ state }) => state === "unknown");

/**
 * The changes that this person may make and that can work in the VM's status, and why others are
 * withheld.
 */
function choicesOn(facts: VmFacts) {
  const { vm, projectName, commands, mayRun, freeze, policy } = facts;
  const shown = targetOfVm(vm, projectName);
  const situation = {
    target: shown,
    refused: refusedInError(facts),
    isFrozen: freeze !== undefined,
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
  { vm, projectName, policy }: VmFacts,
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
