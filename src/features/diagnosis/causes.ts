import { isTransitional, statusFacts, unreadable } from "../../fleet/compute/compute.ts";
import {
  type Markdown,
  md,
  name,
  atTime,
  timeNear,
  withFullStop,
} from "../../messages/markdown.ts";
import { echoMs } from "../../monitor/status-probe.ts";
import { type SeenStatus, wasSeenOtherwise } from "../../monitor/status-records.ts";
import { requestButton } from "../../core/cards/asking.ts";
import { deedWords, requestWords } from "../../core/cards/deed-words.ts";
import { nextInError, refusedInError } from "../../core/cards/render-result.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { statusOf } from "../../core/request/seen.ts";
import { afterOf, beforeOf, callOf, stateWords } from "../../core/request/stage.ts";
import { type StoredRequest, sentAtOf } from "../../core/request/stored-request.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  canChangeStatus,
  dottedName,
  freezeEnder,
  helpersInError,
  labelOnCard,
  locksTarget,
  runButton,
} from "../../registry/define.ts";
import { isSameTime } from "../../text/parse-time.ts";
import type { Cause, Way } from "../cause.ts";

/** A request with its command, which this release knows. */
export interface Known {
  request: StoredRequest;
  command: ChangeCommand;
}

/** What the layers below features know of a VM. */
export interface Facts {
  /** Its status is the one that was just read. */
  vm: Target;
  /** When the compute service last changed its record, as just read. */
  updatedAt?: string | undefined;
  /** As the status monitor last saw it, which may be another status. */
  seen: SeenStatus | undefined;
  /** The newest requests on it and on its project, newest first. */
  requests: readonly Known[];
  freeze: Freeze | undefined;
  commands: readonly Command[];
  now: number;
}

/** The causes that need no feature: outcomes, the status, the freeze, and what is under way. Pure. */
export function causesOf(facts: Facts): readonly Cause[] {
  return [...unknownOutcomes(facts), ...badStatus(facts), ...frozen(facts), ...underWay(facts)];
}

/** What the status monitor knows of the present status. Undefined where it missed its beginning. */
const seenNow = (facts: Facts): SeenStatus | undefined =>
  facts.seen?.[0] === facts.vm.status && !wasMissed(facts) ? facts.seen : undefined;

/**
 * Whether a request left the VM in another status after the monitor saw the present one begin. What
 * the monitor knows is then older than that request: it read the VM neither during it nor after it.
 */
function wasMissed({ vm, seen, requests }: Facts): boolean {
  if (seen === undefined) return false;
  return requests.some(({ request: { stage, record, state, changedAt } }) => {
    if (record.target.id !== vm.id || state !== "done" || changedAt <= seen[1]) return false;
    const left = afterOf(stage);
    return left !== undefined && statusOf(left) !== vm.status;
  });
}

function unknownOutcomes({ vm, requests, now }: Facts): readonly Cause[] {
  return requests.flatMap(({ request, command }): Cause[] => {
    const { record, state } = request;
    if (state !== "unknown") return [];
    const its = record.target.id === vm.id ? "" : md` of its project ${name(record.target.name)}`;
    const way = (label: string, action: string): Way => ({
      command: dottedName(command),
      button: requestButton(label, action, request),
      isRecord: true,
    });
    return [
      {
        place: "outcome",
        sign: "❓",
        text: md`${name(vm.name)} ${locksTarget(command) ? "is locked for changes" : "may have a console open"}: nobody has recorded whether ${requestWords(request, command)}${its}, sent ${atTime(sentAtOf(request), now)}, happened.`,
        next: md`Look in the compute service's own console, then record what you found.`,
        ways: [
          way("It happened", "request:happened"),
          way("It did not happen", "request:not-happened"),
        ],
      },
    ];
  });
}

function badStatus(facts: Facts): readonly Cause[] {
  const { vm } = facts;
  const { isAlarming, isStopped } = statusFacts(vm.status);
  if (vm.status === unreadable)
    return [
      {
        place: "status",
        sign: "⚠️",
        text: md`The compute service gives no status of ${name(vm.name)} that can be read.`,
        next: md`Until it does, nothing is sent to it.`,
      },
    ];
  if (isAlarming) return [inError(facts)];
  return isStopped ? [stopped(facts)] : [];
}

function inError(facts: Facts): Cause {
  const { vm, requests, commands, now } = facts;
  const seen = seenNow(facts);
  const by = behindStatus(facts);
  const said = by && callOf(by.request.stage)?.answer?.message;
  const last = requests.map(({ request }) => request);
  const refused = refusedInError({ vm, last });
  const helping = helpersInError(commands).filter(({ name: called }) => !refused.has(called));
  const since = seen === undefined ? "" : md` since ${timeNear(seen[1], now)}`;
  return {
    place: "status",
    sign: "🔴",
    text: md`${name(vm.name)} ${seen === undefined ? "is" : "has been"} in ERROR${since}${by ? after(by, vm.status) : unasked(seen)}.${said === undefined ? "" : md` ${withFullStop(md`The compute service said: “${said}”`)}`}`,
    next: md`${nextInError(commands)}`,
    ways: helping.map((command) => ({
      command: dottedName(command),
      button: runButton(labelOnCard(command), dottedName(command), { vm: vm.id }),
    })),
  };
}

function stopped(facts: Facts): Cause {
  const { vm, now } = facts;
  const seen = seenNow(facts);
  const by = behindStatus(facts);
  const since = seen === undefined ? "" : md` since ${timeNear(seen[1], now)}`;
  const why = !by
    ? md`${since}${unasked(seen)}`
    : by.request.state === "done" && by.didIt
      ? md`: ${deedWords(by.request, by.command, now)}${by.doubt}`
      : md`${since}${after(by, vm.status)}`;
  const input = { vms: [vm.id] };
  const isSince = seen !== undefined && !(by?.request.state === "done" && by.didIt);
  return {
    place: "stopped",
    sign: "⚪",
    text: md`${name(vm.name)} ${isSince ? "has been" : "is"} STOPPED${why}.`,
    ways: [{ command: "vm.start", button: runButton("Start", "vm.start", input) }],
  };
}

/** `, after olivia's restart (r-…), which failed`. */
function after({ request, command, didIt, doubt }: Behind, status: string): Markdown {
  const what = md`, after ${requestWords(request, command)}`;
  const left = afterOf(request.stage);
  const isOther = !didIt && left !== undefined && statusOf(left) !== status;
  const other = isOther
    ? ` left it ${statusOf(left)}; Gatehouse doesn't know what changed it then`
    : "";
  switch (request.state) {
    case "done":
      return other ? md`${what}, which${other}` : md`${what}${doubt}`;
    case "failed":
      return md`${what}, which failed${other ? md` and${other}` : doubt}`;
    case "unknown":
      return md`${what}, whose outcome is unknown`;
    default:
      return md`${what}, which is ${stateWords(request.state)}`;
  }
}

/** What the status monitor knows when no request explains a status. */
function unasked(seen: SeenStatus | undefined): Markdown {
  const [, , from] = seen ?? [];
  if (seen === undefined) return md`; Gatehouse doesn't know since when`;
  if (from === undefined) return md` or before, when Gatehouse first saw it`;
  return md`, when it was seen to change from ${from}: no request to Gatehouse did that`;
}

/** A request that may be why a VM has its status. */
interface Behind extends Known {
  /** It was read to leave the VM in this status, and the VM wasn't seen in another one since. */
  didIt: boolean;
  /** What else may be behind the status, as the end of a sentence. */
  doubt: Markdown;
}

/**
 * Finds the request behind the present status: the last one, if it was read to bring it about, or if
 * it was under way when the status was seen to begin. A name beside a status is blame, so a request
 * after which the VM was seen otherwise isn't behind it.
 */
function behindStatus(facts: Facts): Behind | undefined {
  const [last] = facts.requests
    .filter(mayHaveChangedStatus)
    .toSorted((a, b) => sentAtOf(b.request) - sentAtOf(a.request));
  if (!last) return undefined;
  const { vm, seen } = facts;
  const { stage, record } = last.request;
  const endedAt = endOf(last.request);
  if (
    endedAt !== undefined &&
    seen &&
    wasSeenOtherwise(seen, { status: vm.status, after: endedAt })
  )
    return undefined;
  const left = afterOf(stage);
  const didIt =
    record.target.id === vm.id &&
    left !== undefined &&
    statusOf(left) === vm.status &&
    statusOf(beforeOf(stage)) !== vm.status;
  if (didIt) return { ...last, didIt, doubt: doubtOf(last, facts) };
  // Without the monitor, a request that merely was on the VM explains nothing.
  return beganDuring(last, seenNow(facts)) ? { ...last, didIt, doubt: md`` } : undefined;
}

const mayHaveChangedStatus = ({ request: { stage, state }, command }: Known): boolean =>
  callOf(stage) !== undefined &&
  state !== "rejected" &&
  state !== "not-applied" &&
  canChangeStatus(command);

/** When a request no longer changed anything. Undefined while it may. */
function endOf({ stage, final, changedAt }: StoredRequest): number | undefined {
  if (stage.state === "unknown") return stage.since;
  return final ? changedAt : undefined;
}

/** Whether the monitor saw a status begin while a request ran, or soon after: it reads now and then. */
function beganDuring({ request }: Known, seen: SeenStatus | undefined): boolean {
  const [, since, from] = seen ?? [];
  if (since === undefined || from === undefined || sentAtOf(request) > since) return false;
  return (endOf(request) ?? since) >= since - echoMs;
}

/** What a person should know before they blame whoever asked for this. Empty where that is safe. */
function doubtOf(last: Known, facts: Facts): Markdown {
  const { updatedAt, now } = facts;
  const { stage, changedAt } = last.request;
  const left = afterOf(stage);
  const leftAt = left && "updatedAt" in left ? left.updatedAt : undefined;
  if (updatedAt !== undefined && leftAt !== undefined && !isSameTime(updatedAt, leftAt))
    return md`; it was changed since`;
  const isFresh = now - changedAt <= echoMs;
  return isFresh || beganDuring(last, seenNow(facts))
    ? md``
    : md`; Gatehouse doesn't know whether it was changed since`;
}

function frozen({ freeze, commands, now }: Facts): readonly Cause[] {
  if (!freeze) return [];
  const ender = freezeEnder(commands);
  const reason = freeze.reason === "" ? "" : md`: “${freeze.reason}”`;
  const ways = ender && [
    {
      command: dottedName(ender),
      button: {
        ...runButton("Thaw", dottedName(ender), {}),
        confirm: {
          title: "Allow changes again?",
          text: "Everyone may then change VMs again.",
          confirm: "Thaw",
        },
      },
      isRecord: true,
    },
  ];
  return [
    {
      place: "freeze",
      sign: "🧊",
      text: withFullStop(md`${freeze.by} froze all changes ${atTime(freeze.at, now)}${reason}`),
      next: md`Until the freeze ends, nothing is sent.`,
      ways: ways ?? [],
    },
  ];
}

function underWay({ vm, requests }: Facts): readonly Cause[] {
  const open = requests.filter(({ request }) => !request.final && request.state !== "unknown");
  if (open.length === 0 && isTransitional(vm.status) && vm.status !== unreadable)
    return [
      {
        place: "under way",
        sign: statusFacts(vm.status).sign,
        text: md`${name(vm.name)} is ${vm.status}, and no request to Gatehouse is under way.`,
      },
    ];
  return open.map(({ request, command }): Cause => ({
    place: "under way",
    sign: "⏳",
    text: md`${name(vm.name)} is ${vm.status}: ${requestWords(request, command)} is ${stateWords(request.state)}.`,
  }));
}
