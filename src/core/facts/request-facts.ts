import { type Markdown, atTime, md, name } from "../../messages/markdown.ts";
import {
  type ChangeCommand,
  type Target,
  calledName,
  dottedName,
  locksTarget,
  requestable,
} from "../../registry/define.ts";
import { requestButton } from "../cards/asking.ts";
import { requestWords } from "../cards/deed-words.ts";
import { stateWords } from "../request/stage.ts";
import { type StoredRequest, sentAtOf } from "../request/stored-request.ts";
import type { Fact, FactQuery, FactSource, Way } from "./fact.ts";

/** Says which requests hold a target's lock, come first, or wait. */
export const requestFacts: FactSource = {
  name: "what holds a lock",
  async read(query) {
    const known = new Map<string, ChangeCommand>(
      requestable(query.commands).map((command) => [command.name, command]),
    );
    const touched = targetsTouched(query.targets);
    return (await query.requests.open()).flatMap((request) =>
      touched(request).map((target) => {
        const command = known.get(request.record.command);
        return request.state === "unknown"
          ? unknownOutcome(target, request, command, query.now)
          : underWay(target, request, command, query);
      }),
    );
  },
};

/**
 * The targets that a request excludes from changes: its own, the VMs of its project, or the project
 * of its VM. A request is told once: of what it names, where that is among the targets.
 */
function targetsTouched(targets: readonly Target[]) {
  const byId = new Map(targets.map((target) => [target.id, target]));
  const byProject = Map.groupBy(
    targets.filter(({ kind }) => kind === "vm"),
    ({ projectId }) => projectId,
  );
  return ({ record: { target } }: StoredRequest): readonly Target[] => {
    // Projects that are to be made have no ID yet, and exclude nothing.
    if (target.id === "") return [];
    const named = byId.get(target.id);
    if (named) return [named];
    if (target.kind === "project") return byProject.get(target.id) ?? [];
    const project = byId.get(target.projectId);
    return project ? [project] : [];
  };
}

function unknownOutcome(
  target: Target,
  request: StoredRequest,
  command: ChangeCommand | undefined,
  now: number,
): Fact {
  const { record } = request;
  const isLocked = !command || locksTarget(command);
  const stands = isLocked ? "is locked for changes" : "may have a console open";
  const way = (label: string, action: string, dotted: string): Way => ({
    command: dotted,
    button: requestButton(label, action, request),
    isRecord: true,
  });
  const dotted = command && dottedName(command);
  return {
    kind: "outcome",
    about: target,
    severity: "alarm",
    sign: "❓",
    text: md`${name(calledName(target))} ${stands}: nobody has recorded whether ${deedWords(request, command)}${elsewhere(target, record.target)}, sent ${atTime(sentAtOf(request), now)}, happened.`,
    request: record.id,
    blocks: () => (isLocked ? "fails" : undefined),
    next: md`Look in the compute service's own console, then record what you found.`,
    ways:
      dotted === undefined
        ? []
        : [
            way("It happened", "request:happened", dotted),
            way("It did not happen", "request:not-happened", dotted),
          ],
  };
}

function underWay(
  target: Target,
  request: StoredRequest,
  command: ChangeCommand | undefined,
  { change }: FactQuery,
): Fact {
  const { record, state } = request;
  const isWaiting = state === "draft";
  const stands = isWaiting ? "has an open request" : "is changing";
  const first = change && !isWaiting ? " and comes first" : "";
  return {
    kind: "under way",
    about: target,
    severity: "notice",
    sign: "⏳",
    text: md`${name(calledName(target))} ${stands}: ${deedWords(request, command)}${elsewhere(target, record.target)} ${isWaiting ? "waits for approval" : `is ${stateWords(state)}`}${first}.`,
    since: record.createdAt,
    request: record.id,
    blocks: () => "note",
  };
}

/** Another release may know the command of a request that this one doesn't know. */
const deedWords = (request: StoredRequest, command: ChangeCommand | undefined): Markdown =>
  command
    ? requestWords(request, command)
    : md`${request.record.requester.name}'s ${request.record.command} (${name(request.record.id)})`;

/** ` of its project payments`. Empty where the request names the target itself. */
function elsewhere(target: Target, named: Target): Markdown {
  if (named.id === target.id) return md``;
  const noun = named.kind === "project" ? "project" : "VM";
  return md` of its ${noun} ${name(named.name)}`;
}
