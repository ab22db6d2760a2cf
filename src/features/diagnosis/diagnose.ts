import type { Diagnose } from "../../commands/diagnosis.ts";
import { unlessUnreachable } from "../../commands/last-known.ts";
import { ComputeError, statusFacts, unreachableWords } from "../../fleet/compute/compute.ts";
import { type Message } from "../../messages/blocks.ts";
import { small } from "../../messages/parts.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { card } from "../../messages/card.ts";
import { type Markdown, md, name, timeNear } from "../../messages/markdown.ts";
import { deedWords, requestWords } from "../../core/cards/deed-words.ts";
import { type Fact, isFrozenBy, unreadIn } from "../../core/facts/fact.ts";
import { unreadLine } from "../../core/facts/facts-about.ts";
import { waysFor } from "../../core/facts/ways-for.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { callOf, stateWords } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { type ChangeCommand, type Target, requestable } from "../../registry/define.ts";
import { showRequest, showVm } from "../../registry/command-buttons.ts";

const mostRead = 20;
const mostShown = 5;
const mostWays = 6;

/** Says what is wrong with a VM, from all that is known of it. */
export const diagnose: Diagnose = async (knownVm, reading) => {
  const { compute, inventory, journal, commands, now } = reading;
  const read = await unlessUnreachable(compute.vms.get(knownVm.id, { onGaps: () => undefined }));
  const isUnread = read instanceof ComputeError;
  if (!isUnread) await inventory.note({ vm: read });
  const vm = isUnread ? knownVm : { ...knownVm, status: read.status };
  const updatedAt = isUnread ? undefined : read.updatedAt;
  const [facts, own, ofProject] = await Promise.all([
    reading.factsAbout([{ ...vm, updatedAt }], { reader: reading, isFresh: true }),
    recentRequests({ targetId: vm.id, most: mostRead }, journal),
    recentRequests({ targetId: vm.projectId, most: mostRead }, journal),
  ]);
  const unread = unreadLine(unreadIn(facts));
  return render(vm, facts, {
    last: lastSent([...own, ...ofProject], requestable(commands)),
    ways: waysFor(facts, vm, { ...reading, isFrozen: isFrozenBy(facts) }).slice(0, mostWays),
    history: own[0]?.record.id,
    unread: [
      isUnread &&
        md`⚠️ The compute service ${unreachableWords(read)}, so its status is the last one known.`,
      unread && md`${unread} Ask again in a minute.`,
    ],
    now: now(),
  });
};

/** A request with its command, which this release knows. */
interface KnownRequest {
  request: StoredRequest;
  command: ChangeCommand;
}

/** The newest request that was sent. */
function lastSent(
  requests: readonly StoredRequest[],
  commands: readonly ChangeCommand[],
): KnownRequest | undefined {
  return requests
    .filter(({ stage }) => callOf(stage) !== undefined)
    .toSorted((a, b) => b.record.createdAt - a.record.createdAt)
    .flatMap((request): KnownRequest[] => {
      const command = commands.find((candidate) => candidate.name === request.record.command);
      return command ? [{ request, command }] : [];
    })[0];
}

function render(
  vm: Target,
  facts: readonly Fact[],
  more: {
    last: KnownRequest | undefined;
    ways: readonly ButtonSpec[];
    /** The newest request on the VM, whose steps can be shown. */
    history: string | undefined;
    unread: readonly (Markdown | undefined | false)[];
    now: number;
  },
): Message {
  const known = facts.filter(({ unread }) => unread === undefined);
  const well = known.filter(({ severity }) => severity === "well");
  // What matters only to a change of the VM isn't against it, and stands below.
  const beside = known.filter(({ severity }) => severity === "info");
  const [first, ...others] = known.filter(
    ({ severity }) => severity !== "well" && severity !== "info",
  );
  const checked = well.reduce((text, fact) => md`${text} ${fact.text}`, md``);
  const nothing = well.length > 0 ? "Nothing else" : "Nothing";
  const shown = [...others, ...beside].slice(0, mostShown);
  const left = others.length + beside.length - shown.length;
  return card({
    sign: first?.sign ?? statusFacts(vm.status).sign,
    title: first
      ? wholeOf(first)
      : md`${name(vm.name)} is ${vm.status}.${checked} ${nothing} is known against it.`,
    lines: [
      first?.next,
      ...shown.map((fact) => md`${fact.sign} ${wholeOf(fact)}`),
      left > 0 && md`… and ${left} more`,
    ],
    body: [
      small(...more.unread.flatMap((line) => (line ? [line] : [])), lastWords(more.last, more.now)),
    ],
    ways: [
      ...more.ways,
      ...(more.history === undefined ? [] : [showRequest(more.history, vm.name, "History")]),
      showVm(vm),
    ],
  });
}

const wholeOf = ({ text, detail }: Fact): Markdown => (detail ? md`${text} ${detail}` : text);

function lastWords(last: KnownRequest | undefined, now: number): Markdown {
  if (!last) return md`Gatehouse has no change of it on record.`;
  const { request, command } = last;
  if (request.state === "done")
    return md`Last change with Gatehouse: ${deedWords(request, command, now)}.`;
  return md`Last change with Gatehouse: ${requestWords(request, command)}, ${stateWords(request.state)} since ${timeNear(request.changedAt, now)}.`;
}
