import { isTransitional, statusFacts, unreadable } from "../../fleet/compute/compute.ts";
import { type Markdown, md, name, timeNear, withFullStop } from "../../messages/markdown.ts";
import {
  type SeenStatus,
  type SeenStatuses,
  echoMs,
  wasSeenOtherwise,
} from "../../monitor/status-records.ts";
import {
  type ChangeCommand,
  type Command,
  calledName,
  canChangeStatus,
  dottedName,
  helpersInError,
  labelOnCard,
  nounOf,
  requestable,
  runButton,
} from "../../registry/define.ts";
import { isSameTime } from "../../text/parse-time.ts";
import { deedWords, requestWords } from "../cards/deed-words.ts";
import { nextInError, refusedInError } from "../cards/render-result.ts";
import { statusOf } from "../request/seen.ts";
import { afterOf, beforeOf, callOf, stateWords } from "../request/stage.ts";
import { type StoredRequest, sentAtOf } from "../request/stored-request.ts";
import {
  type Considered,
  type Fact,
  type FactQuery,
  type FactSource,
  type KnownTarget,
  mostExplained,
} from "./fact.ts";

/** A request with its command, which this release knows. */
export interface KnownRequest {
  request: StoredRequest;
  command: ChangeCommand;
}

/** What explains the status of a VM. */
export interface StatusFacts {
  /** Its status is the one that was just read. */
  target: KnownTarget;
  /** As the status monitor last saw it, which may be another status. */
  seen: SeenStatus | undefined;
  /** The newest requests on it and on its project. Undefined where they weren't read. */
  requests: readonly KnownRequest[] | undefined;
  commands: readonly Command[];
  change?: Considered | undefined;
  now: number;
}

/**
 * Says that a target is in ERROR, stopped, or on its way between two statuses, since when, and
 * after whose request.
 */
export const statusFactsFrom = (statuses: {
  readRecords(ids: readonly string[]): Promise<ReadonlyMap<string, SeenStatuses>>;
}): FactSource => ({
  name: "what is behind the status",
  async read(query) {
    const { targets, change } = query;
    // The change's own facts say what its form read of the one target.
    const read = change?.facts?.seen?.status;
    const unusual = targets
      .map((target) => (read === undefined ? target : { ...target, status: read }))
      .filter(({ id, status }) => id !== "" && isUnusual(status));
    if (unusual.length === 0) return [];
    const changing = unusual.some(({ status }) => isTransitional(status))
      ? new Set((await query.requests.open()).map(({ record }) => record.target.id))
      : new Set<string>();
    const lasting = unusual.filter(({ kind, status }) => kind === "vm" && !isTransitional(status));
    const seen = await statuses.readRecords([...new Set(lasting.map((vm) => vm.projectId))]);
    // Many VMs may be stopped, and few are in ERROR. A change of these may have been refused.
    const explained = new Set(
      lasting
        .filter(({ status }) => statusFacts(status).isAlarming || targets.length <= mostExplained)
        .slice(0, change ? undefined : mostExplained),
    );
    const facts = unusual.map(async (target): Promise<readonly Fact[]> => {
      if (isTransitional(target.status)) return onItsWay(target, changing, query);
      return explainStatus({
        ...query,
        target,
        seen: seen.get(target.projectId)?.[target.id],
        requests: explained.has(target) ? await requestsBehind(target, query) : undefined,
      });
    });
    return (await Promise.all(facts)).flat();
  },
});

const isUnusual = (status: string): boolean => {
  const { isAlarming, isStopped } = statusFacts(status);
  return isAlarming || isStopped || isTransitional(status);
};

async function requestsBehind(
  { id, projectId }: KnownTarget,
  { requests, commands }: FactQuery,
): Promise<readonly KnownRequest[]> {
  const known = new Map<string, ChangeCommand>(
    requestable(commands).map((command) => [command.name, command]),
  );
  const all = await Promise.all([requests.on(id), requests.on(projectId)]);
  return all
    .flat()
    .toSorted((a, b) => b.record.createdAt - a.record.createdAt)
    .flatMap((request): KnownRequest[] => {
      const command = known.get(request.record.command);
      return command ? [{ request, command }] : [];
    });
}

/** Says that a status passes, unless a request that is under way says so. */
function onItsWay(
  target: KnownTarget,
  changing: ReadonlySet<string>,
  { change }: FactQuery,
): readonly Fact[] {
  const called = name(calledName(target));
  const fact = { kind: "status", about: target, blocks: () => "note" as const };
  if (target.status === unreadable)
    return [
      {
        ...fact,
        severity: "warning",
        sign: "⚠️",
        text: md`The compute service gives no status of ${called} that can be read.`,
        next: md`Until it does, nothing is sent to it.`,
      },
    ];
  if (!change && changing.has(target.id)) return [];
  const so = change
    ? "it would wait until that has settled"
    : "no request to Gatehouse is under way";
  return [
    {
      ...fact,
      kind: "under way",
      severity: "notice",
      sign: statusFacts(target.status).sign,
      text: md`${called} is ${target.status}, and ${so}.`,
    },
  ];
}

/** Says that a target is in ERROR or stopped, and why. Pure. */
export function explainStatus(facts: StatusFacts): readonly Fact[] {
  const { isAlarming, isStopped } = statusFacts(facts.target.status);
  if (isAlarming) return [inError(facts)];
  return isStopped ? [stopped(facts)] : [];
}

/** What the status monitor knows of the present status. Undefined where it missed its beginning. */
const seenNow = (facts: StatusFacts): SeenStatus | undefined =>
  facts.seen?.[0] === facts.target.status && !wasMissed(facts) ? facts.seen : undefined;

/**
 * Whether a request left the VM in another status after the monitor saw the present one begin. What
 * the monitor knows is then older than that request: it read the VM neither during it nor after it.
 */
function wasMissed({ target, seen, requests = [] }: StatusFacts): boolean {
  if (seen === undefined) return false;
  return requests.some(({ request: { stage, record, state, changedAt } }) => {
    if (record.target.id !== target.id || state !== "done" || changedAt <= seen[1]) return false;
    const left = afterOf(stage);
    return left !== undefined && statusOf(left) !== target.status;
  });
}

function inError(facts: StatusFacts): Fact {
  const { target, requests = [], commands, change } = facts;
  const { sinceWords, since, behind, cause } = beginning(facts, `in ${target.status}`);
  const message = behind && callOf(behind.request.stage)?.answer?.message;
  const last = requests.map(({ request }) => request);
  const refused = refusedInError({ vm: target, last });
  const isRefused = change !== undefined && refused.has(change.command.name);
  const refusal = md`, and the compute service refused the last ${change ? nounOf(change.command) : ""} because of that`;
  const helping = helpersInError(commands).filter((command) => !refused.has(command.name));
  return {
    kind: "status",
    about: target,
    severity: "alarm",
    sign: statusFacts(target.status).sign,
    text: md`${name(calledName(target))} ${sinceWords}${isRefused ? refusal : cause}.`,
    detail:
      message === undefined ? undefined : withFullStop(md`The compute service said: “${message}”`),
    since,
    request: behind?.request.record.id,
    blocks: (command) => (refused.has(command.name) ? "fails" : "note"),
    next: md`${nextInError(commands)}`,
    ways: helping.map((command) => ({
      command: dottedName(command),
      button: runButton(labelOnCard(command), dottedName(command), { vm: target.id }),
    })),
  };
}

function stopped(facts: StatusFacts): Fact {
  const { target, now } = facts;
  const { sinceWords, since, behind, cause } = beginning(facts, target.status);
  const isTheirs = behind?.request.state === "done" && behind.didIt;
  const why = isTheirs
    ? md`is ${target.status}: ${deedWords(behind.request, behind.command, now)}${behind.doubt}`
    : md`${sinceWords}${cause}`;
  return {
    kind: "stopped",
    about: target,
    severity: "notice",
    sign: statusFacts(target.status).sign,
    text: md`${name(calledName(target))} ${why}.`,
    since,
    request: behind?.request.record.id,
    ways: [{ command: "vm.start", button: runButton("Start", "vm.start", { vms: [target.id] }) }],
  };
}

/** `has been in ERROR since 11:54 AM`, and what is known of how that began. */
function beginning(facts: StatusFacts, status: string) {
  const { target, requests, now } = facts;
  const seen = seenNow(facts);
  const behind = requests && behindStatus({ ...facts, requests });
  const sinceWords = seen
    ? md`has been ${status} since ${timeNear(seen[1], now)}`
    : md`is ${status}`;
  const unexplained = requests ? unasked(seen) : md``;
  const cause = behind ? after(behind, target.status) : unexplained;
  return { sinceWords, since: seen?.[1], behind, cause };
}

/** `, after olivia's restart (r-…), which failed`. */
function after({ request, command, didIt, doubt }: Behind, status: string): Markdown {
  const afterRequest = md`, after ${requestWords(request, command)}`;
  const left = afterOf(request.stage);
  const isOther = !didIt && left !== undefined && statusOf(left) !== status;
  const other = isOther
    ? ` left it ${statusOf(left)}; Gatehouse doesn't know what changed it then`
    : "";
  switch (request.state) {
    case "done":
      return other ? md`${afterRequest}, which${other}` : md`${afterRequest}${doubt}`;
    case "failed":
      return md`${afterRequest}, which failed${other ? md` and${other}` : doubt}`;
    case "unknown":
      return md`${afterRequest}, whose outcome is unknown`;
    default:
      return md`${afterRequest}, which is ${stateWords(request.state)}`;
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
interface Behind extends KnownRequest {
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
function behindStatus(
  facts: StatusFacts & { requests: readonly KnownRequest[] },
): Behind | undefined {
  const [last] = facts.requests
    .filter(mayHaveChangedStatus)
    .toSorted((a, b) => sentAtOf(b.request) - sentAtOf(a.request));
  if (!last) return undefined;
  const { target, seen } = facts;
  const { stage, record } = last.request;
  const endedAt = endOf(last.request);
  if (
    endedAt !== undefined &&
    seen &&
    wasSeenOtherwise(seen, { status: target.status, after: endedAt })
  )
    return undefined;
  const left = afterOf(stage);
  const didIt =
    record.target.id === target.id &&
    left !== undefined &&
    statusOf(left) === target.status &&
    statusOf(beforeOf(stage)) !== target.status;
  if (didIt) return { ...last, didIt, doubt: doubtOf(last, facts) };
  // Without the monitor, a request that merely was on the VM explains nothing.
  return beganDuring(last, seenNow(facts)) ? { ...last, didIt, doubt: md`` } : undefined;
}

const mayHaveChangedStatus = ({ request: { stage, state }, command }: KnownRequest): boolean =>
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
function beganDuring({ request }: KnownRequest, seen: SeenStatus | undefined): boolean {
  const [, since, from] = seen ?? [];
  if (since === undefined || from === undefined || sentAtOf(request) > since) return false;
  return (endOf(request) ?? since) >= since - echoMs;
}

/** What a person should know before they blame whoever asked for this. Empty where that is safe. */
function doubtOf(last: KnownRequest, facts: StatusFacts): Markdown {
  const {
    target: { updatedAt },
    now,
  } = facts;
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
