import type { Diagnose } from "../../commands/diagnosis.ts";
import type { ReadContext } from "../../commands/context.ts";
import { unlessUnreachable } from "../../commands/last-known.ts";
import { ComputeError, statusFacts, unreachableWords } from "../../fleet/compute/compute.ts";
import { type Message, context } from "../../messages/blocks.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { card } from "../../messages/card.ts";
import { type Markdown, md, name, timeNear } from "../../messages/markdown.ts";
import type { SeenStatus, SeenStatuses } from "../../monitor/status-records.ts";
import { deedWords, requestWords } from "../../core/cards/deed-words.ts";
import { isProtected } from "../../core/permit/permit.ts";
import { askOnce } from "../../core/permit/refusal.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { callOf, stateWords } from "../../core/request/stage.ts";
import { type ChangeCommand, type Target, dottedName, requestable } from "../../registry/define.ts";
import { showRequest, showVm } from "../../registry/command-buttons.ts";
import { type Cause, type Explains, type Way, causePlaces } from "../cause.ts";
import { type Known, causesOf } from "./causes.ts";

const mostRead = 20;
const mostShown = 5;
const mostWays = 6;

/**
 * Says what is wrong with a VM from what is known: its status, the journal, what the monitor saw,
 * and what features contribute. Reads nothing that the reader may not see.
 */
export function diagnoseWith(by: {
  statuses: { readRecords(ids: readonly string[]): Promise<ReadonlyMap<string, SeenStatuses>> };
  explains(): readonly Explains[];
}): Diagnose {
  return async (found, reading) => {
    const { compute, inventory, journal, commands, now } = reading;
    const read = await unlessUnreachable(compute.vms.get(found.id, { onGaps: () => undefined }));
    const isUnread = read instanceof ComputeError;
    if (!isUnread) await inventory.note({ vm: read });
    const vm = isUnread ? found : { ...found, status: read.status };
    const [its, ofProject, freeze, statuses] = await Promise.all([
      recentRequests({ targetId: vm.id, most: mostRead }, journal),
      recentRequests({ targetId: vm.projectId, most: mostRead }, journal),
      journal.freezeState(),
      by.statuses.readRecords([vm.projectId]),
    ]);
    const known = new Map<string, ChangeCommand>(
      requestable(commands).map((command) => [command.name, command]),
    );
    const requests = [...its, ...ofProject]
      .toSorted((a, b) => b.record.createdAt - a.record.createdAt)
      .flatMap((request): Known[] => {
        const command = known.get(request.record.command);
        return command ? [{ request, command }] : [];
      });
    const seen: SeenStatus | undefined = statuses.get(vm.projectId)?.[vm.id];
    const facts = { vm, requests, freeze, commands, now: now() };
    const told = await Promise.allSettled(
      by.explains().map((explain) => explain({ vm, last: its, reading })),
    );
    const causes = [
      ...causesOf({ ...facts, seen, updatedAt: isUnread ? undefined : read.updatedAt }),
      ...told.flatMap((one) => (one.status === "fulfilled" ? one.value : [])),
    ];
    return render(vm, causes, {
      last: requests.find(({ request }) => callOf(request.stage) !== undefined),
      ways: waysFor(vm, causes, freeze !== undefined, reading),
      history: its[0]?.record.id,
      unread: [
        ...(isUnread
          ? [
              md`The compute service ${unreachableWords(read)}, so its status is the last one known.`,
            ]
          : []),
        ...(told.some(({ status }) => status === "rejected")
          ? [md`Not everything could be read, so there may be more. Ask again in a minute.`]
          : []),
      ],
      now: now(),
    });
  };
}

/** The buttons that this reader may press, without those that would be refused now. */
function waysFor(
  vm: Target,
  causes: readonly Cause[],
  isFrozen: boolean,
  { commands, mayRun, policy, isShared }: ReadContext,
): ButtonSpec[] {
  const offered = inOrder(causes)
    .flatMap(({ ways = [] }) => ways)
    .flatMap(({ command: dotted, button, isRecord = false }: Way): ButtonSpec[] => {
      const command = commands.find((one) => dottedName(one) === dotted);
      if (!command || !mayRun(command, command.class === "administer" ? [] : [vm])) return [];
      if (isProtected({ command, targets: [vm] }, policy)) return [];
      if (command.kind === "change" && isFrozen && !isRecord) return [];
      // A button of a request works only in the requester's view of it, or below its card.
      if (isRecord && isShared) return [];
      return [isRecord ? button : askOnce(button, command, vm, policy)];
    });
  const each = new Map(offered.map((one) => [`${one.action} ${one.value}`, one]));
  return [...each.values()].slice(0, mostWays);
}

const inOrder = (causes: readonly Cause[]) =>
  causes.toSorted((a, b) => causePlaces.indexOf(a.place) - causePlaces.indexOf(b.place));

function render(
  vm: Target,
  causes: readonly Cause[],
  more: {
    /** The newest request that was sent. */
    last: Known | undefined;
    ways: readonly ButtonSpec[];
    /** The newest request on the VM, whose steps can be shown. */
    history: string | undefined;
    unread: readonly Markdown[];
    now: number;
  },
): Message {
  const [well, wrong] = [true, false].map((isWell) =>
    inOrder(causes).filter(({ place }) => (place === "well") === isWell),
  ) as [Cause[], Cause[]];
  const [first, ...others] = wrong;
  const looked = well.reduce((text, { text: one }) => md`${text}; ${one}`, md``);
  const nothing = md`${well.length > 0 ? "nothing else" : "nothing"} is known against it`;
  const shown = others.slice(0, mostShown);
  const left = others.length - shown.length;
  return card({
    sign: first?.sign ?? statusFacts(vm.status).sign,
    title: first?.text ?? md`${name(vm.name)} is ${vm.status}${looked}; ${nothing}.`,
    lines: [
      first?.next,
      ...shown.map((one) => md`${one.sign} ${one.text}`),
      left > 0 && md`… and ${left} more`,
    ],
    body: [context(...more.unread.map((one) => md`⚠️ ${one}`), lastWords(more.last, more.now))],
    ways: [
      ...more.ways,
      ...(more.history === undefined ? [] : [showRequest(more.history, vm.name, "History")]),
      showVm(vm),
    ],
  });
}

function lastWords(last: Known | undefined, now: number): Markdown {
  if (!last) return md`Gatehouse has no change of it on record.`;
  const { request, command } = last;
  if (request.state === "done")
    return md`Last change with Gatehouse: ${deedWords(request, command, now)}.`;
  return md`Last change with Gatehouse: ${requestWords(request, command)}, ${stateWords(request.state)} since ${timeNear(request.changedAt, now)}.`;
}
