import { isTransitional } from "../../fleet/compute/compute.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import {
  counted,
  type Markdown,
  md,
  name,
  when,
  listed,
  dayAndTime,
  timeNear,
  withFullStop,
  atTime,
} from "../../messages/markdown.ts";
import { type judgeMemory, memoryMend } from "../../redis/check.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { signs } from "../../core/cards/render-result.ts";
import { showRequest, showVm } from "../../registry/command-buttons.ts";
import {
  digestPlaces,
  type KindOfLine,
  type Line,
  type LinesOfKind,
  type ReadPart,
} from "../digest-part.ts";
import type { SwitchFact } from "./switches.ts";
import type { RequestFact } from "./request-facts.ts";
import { showChanges } from "./line-buttons.ts";

/**
 * The facts of a digest. A part that couldn't be read is undefined and named in `unread`; it is
 * never an empty list.
 */
export interface DigestFacts {
  now: number;
  /** Changes after this time are reported (ms). */
  since: number;
  vms?: readonly KnownVm[] | undefined;
  /** The parts that features contributed. */
  parts?: readonly ReadPart[] | undefined;
  /** The present freeze. */
  frozen?: Freeze | undefined;
  /** How full Redis is; only where the digest is about everything. */
  memory?: ReturnType<typeof judgeMemory> | undefined;
  /** Newest first. */
  switches?: readonly SwitchFact[] | undefined;
  /** How many the channel sees, where this is about some of them. */
  seen?: number | undefined;
  /** When a VM with a problem entered its status, by ID (ms). */
  statusSince: ReadonlyMap<string, number>;
  refreshedAt?: number | undefined;
  stale: boolean;
  unreadProjects: readonly string[];
  /** What the compute service gave only in part, as text. */
  gaps?: readonly string[] | undefined;
  open?: readonly RequestFact[] | undefined;
  ended?: readonly RequestFact[] | undefined;
  unread: readonly string[];
  /** What was read only in part, like `the newest 1,000 requests`. */
  cut?: readonly string[] | undefined;
  /** A VM that is in a transition for longer is stuck (ms). */
  stuckAfterMs: number;
}

interface OwnKind extends KindOfLine {
  lines(facts: DigestFacts): readonly Line[];
}

/**
 * The kinds of lines in every digest; features add more. What the person in charge must know has
 * its own kind, so that it never disappears in a count of changes.
 */
const ownKinds = {
  frozen: {
    place: "freeze",
    words: ["freeze of all changes", "freezes of all changes"],
    isLasting: true,
    lines: ({ frozen, now }) => (frozen ? [frozenLine(frozen, now)] : []),
  },
  memory: {
    place: "alarm",
    words: ["warning about Redis", "warnings about Redis"],
    lines: ({ memory }) =>
      memory?.isNearlyFull
        ? [
            {
              key: "memory",
              text: md`🟠 Redis is nearly full (${memory.words}). ${memoryMend}`,
              button: undefined,
            },
          ]
        : [],
  },
  error: { place: "trouble", words: ["VM in ERROR", "VMs in ERROR"], lines: errorLines },
  stuck: { place: "trouble", words: ["VM stuck", "VMs stuck"], lines: stuckLines },
  unknown: {
    place: "unknown",
    words: ["unknown outcome", "unknown outcomes"],
    isLasting: true,
    lines: (facts) =>
      oldestFirst(facts, "unknown").map(({ id, command, target, requester, changedAt }) => ({
        key: id,
        text: md`${signs.unknown} *${command}* ${name(target.name)}, requested by ${requester}: outcome unknown since ${timeNear(changedAt, facts.now)}. Someone must record it.`,
        button: showRequest(id, aboutOf({ command, target })),
      })),
  },
  emergency: {
    place: "decision",
    words: ["break-glass use", "break-glass uses"],
    isLasting: true,
    lines: emergencyLines,
  },
  approval: {
    place: "decision",
    words: ["waiting for approval", "waiting for approval"],
    isLasting: true,
    lines: (facts) =>
      oldestFirst(facts, "draft").flatMap(({ id, command, target, requester, approval }) => {
        if (!approval) return [];
        const { yes, required, expiresAt } = approval;
        const text = md`✋ *${command}* ${name(target.name)}, requested by ${requester}, has ${yes} of ${counted(required, "approval")}, until ${when(expiresAt, "{time}")}.`;
        return [{ key: id, text, button: showRequest(id, aboutOf({ command, target }), "Show") }];
      }),
  },
  switch: {
    place: "change",
    words: ["freeze or thaw", "freezes and thaws"],
    isLasting: true,
    lines: switchLines,
  },
  recorded: {
    place: "change",
    words: ["outcome recorded by a person", "outcomes recorded by a person"],
    isLasting: true,
    lines: recordedLines,
  },
  guarded: {
    place: "change",
    words: ["restore, deletion, or approved change", "restores, deletions, and approved changes"],
    isLasting: true,
    lines: guardedLines,
  },
  turnedAway: {
    place: "change",
    words: ["request not approved", "requests not approved"],
    isLasting: true,
    lines: turnedAwayLines,
  },
  change: { place: "change", words: ["change", "changes"], isLasting: true, lines: changeLines },
} as const satisfies Record<string, OwnKind>;

export interface Item extends Line, KindOfLine {
  kind: string;
  isLasting: boolean;
}

/** All lines, the most urgent first. Within one place, lines of features come last. */
export function itemsOf(facts: DigestFacts): Item[] {
  const { parts = [] } = facts;
  const adds = new Map(parts.flatMap((part) => [...(part.adds ?? [])]));
  const withMore = (line: Line): Line => {
    const more = adds.get(line.key);
    return more ? { ...line, text: md`${line.text} ${more}` } : line;
  };
  const own = Object.entries<OwnKind>(ownKinds).map(([kind, { lines, ...how }]): LinesOfKind => ({
    kind,
    lines: lines(facts).map(withMore),
    ...how,
  }));
  const all = [...own, ...parts.flatMap((part) => part.all)];
  return digestPlaces
    .flatMap((place) => all.filter((one) => one.place === place))
    .flatMap(({ lines, isLasting = false, ...how }) =>
      lines.map((line) => ({ ...line, ...how, isLasting })),
    );
}

/** What a button about a request is about. */
const aboutOf = ({ command, target }: Pick<RequestFact, "command" | "target">) =>
  `${command} ${target.name}`;
const quoted = (reason: string | undefined) => (reason ? md`: “${reason}”` : md``);
const lastRead = ({ unreadProjects }: DigestFacts, { projectName }: KnownVm) =>
  unreadProjects.includes(projectName) ? " when it was last read" : "";

function errorLines(facts: DigestFacts): Line[] {
  const inError = (facts.vms ?? []).filter(({ status }) => status === "ERROR");
  return inError.map((vm) => {
    const since = facts.statusSince.get(vm.id);
    const from = since === undefined ? "" : md` since ${timeNear(since, facts.now)}`;
    const text = md`🔴 *${vm.name}* in ${vm.projectName} ${since === undefined ? "is" : "has been"} in ERROR${from}${lastRead(facts, vm)}.`;
    return { key: vm.id, text, button: showVm(vm) };
  });
}

function stuckLines(facts: DigestFacts): Line[] {
  return (facts.vms ?? []).flatMap((vm) => {
    const since = isTransitional(vm.status) ? facts.statusSince.get(vm.id) : undefined;
    if (since === undefined || facts.now - since <= facts.stuckAfterMs) return [];
    const text = md`🟡 *${vm.name}* in ${vm.projectName} has been ${vm.status} since ${timeNear(since, facts.now)}${lastRead(facts, vm)}.`;
    return [{ key: `${vm.id}:${since}`, text, button: showVm(vm) }];
  });
}

function oldestFirst({ open = [] }: DigestFacts, state: string): RequestFact[] {
  const inState = open.filter((request) => request.state === state);
  return inState.toSorted((a, b) => a.createdAt - b.createdAt);
}

function frozenLine({ by, reason, at }: Freeze, now: number): Line {
  const text = withFullStop(md`🧊 *${by} froze all changes* ${atTime(at, now)}${quoted(reason)}`);
  return { key: String(at), text, button: undefined };
}

/** Freezes and thaws that are over. The present freeze has its own line. */
function switchLines({ switches = [], frozen }: DigestFacts): Line[] {
  const thawed = switches.findIndex(({ is }) => is === "thaw");
  const over = frozen ? (thawed < 0 ? [] : switches.slice(thawed)) : switches;
  return over.map(({ is, by, reason, at }) => ({
    key: `${is} ${at}`,
    text:
      is === "freeze"
        ? withFullStop(md`🧊 ${by} froze all changes ${dayAndTime(at)}${quoted(reason)}`)
        : md`🧊 ${by} allowed changes again ${dayAndTime(at)}.`,
    button: undefined,
  }));
}

/** Each ended request is told once, by the first of these that it is. */
function partOf({ ended = [], parts: read = [] }: DigestFacts) {
  const told = new Set(read.flatMap(({ tellsOf = [] }) => [...tellsOf]));
  const isMade = ({ state }: RequestFact) => state === "done" || state === "failed";
  const isRecorded = ({ decidedBy, state }: RequestFact) =>
    decidedBy !== undefined && state !== "cancelled";
  const parts = Map.groupBy(ended, (request) => {
    const { id, isBreakGlass, isDestructive, approvedBy = [], approval, state } = request;
    if (told.has(id)) return "none";
    if (isBreakGlass) return "emergency";
    if (isRecorded(request)) return "recorded";
    if (state === "denied" || (state === "expired" && approval)) return "turned-away";
    if (state === "done" && (isDestructive || approvedBy.length > 0)) return "guarded";
    return isMade(request) ? "change" : "none";
  });
  return (part: "emergency" | "recorded" | "turned-away" | "guarded" | "change") =>
    parts.get(part) ?? [];
}

const approvedWords = ({ approvedBy = [] }: Pick<RequestFact, "approvedBy">) =>
  approvedBy.length === 0 ? md`` : md`; approved by ${approvedBy.join(", ")}`;

/** Says what was done, like `Restored `db-1` from nightly`, or how it ended instead. */
export function deedWords(request: RequestFact): Markdown {
  const { state, done, command, target, stateWords, detail, isUndo, why } = request;
  const what = md`${name(target.name)}${detail ? ` ${detail}` : ""}${isUndo ? " (undo)" : ""}`;
  if (state === "done") return md`*${done}* ${what}`;
  const is = stateWords === "failed" ? "failed" : `ended: ${stateWords}`;
  return md`*${command}* ${what} ${is}${why ? md` (${why})` : ""}`;
}

function emergencyWords(request: RequestFact): Markdown {
  const { requester, changedAt, reason } = request;
  return withFullStop(
    md`${deedWords(request)} without approval (break-glass) ${dayAndTime(changedAt)}, requested by ${requester}${quoted(reason)}`,
  );
}

function emergencyLines(facts: DigestFacts): Line[] {
  return partOf(facts)("emergency").map((request) => ({
    key: request.id,
    text: md`🚨 ${emergencyWords(request)}`,
    button: showRequest(request.id, aboutOf(request)),
  }));
}

function recordedLines(facts: DigestFacts): Line[] {
  return partOf(facts)("recorded").map((request) => {
    const { id, command, target, requester, decidedBy, state, changedAt } = request;
    const happened = state === "not-applied" ? "did not happen" : "happened";
    return {
      key: id,
      text: withFullStop(
        md`✍️ *${command}* ${name(target.name)}, requested by ${requester}: ${decidedBy?.name ?? ""} recorded ${dayAndTime(changedAt)} that it ${happened}${quoted(decidedBy?.reason)}`,
      ),
      button: showRequest(id, aboutOf({ command, target })),
    };
  });
}

function guardedLines(facts: DigestFacts): Line[] {
  return partOf(facts)("guarded").map((request) => {
    const { id, command, target, requester, changedAt } = request;
    return {
      key: id,
      text: md`✏️ ${deedWords(request)} · ${requester}, ${dayAndTime(changedAt)}${approvedWords(request)}.`,
      button: showRequest(id, aboutOf({ command, target })),
    };
  });
}

function turnedAwayLines(facts: DigestFacts): Line[] {
  return partOf(facts)("turned-away").map(
    ({ id, command, target, requester, state, denied, changedAt, why }) => {
      const how =
        state === "denied"
          ? md`${denied?.name ?? "someone"} denied it ${dayAndTime(changedAt)}${quoted(denied?.reason)}`
          : md`${why ?? "nobody approved it in time"}, expired ${dayAndTime(changedAt)}`;
      return {
        key: id,
        text: withFullStop(
          md`⛔ *${command}* ${name(target.name)}, requested by ${requester}: ${how}`,
        ),
        button: showRequest(id, aboutOf({ command, target })),
      };
    },
  );
}

/** Each failure has a line; all successes share one. */
function changeLines(facts: DigestFacts): Line[] {
  const ended = partOf(facts)("change");
  const failed = ended.filter(({ state }) => state === "failed");
  const done = ended.filter(({ state }) => state === "done");
  const failures = failed.map((request) => {
    const { id, command, target, requester, changedAt, why } = request;
    const because = why ? md`: ${why}` : "";
    return {
      key: id,
      text: md`${signs.failed} *${command}* ${name(target.name)} failed ${dayAndTime(changedAt)}, requested by ${requester}${approvedWords(request)}${because}.`,
      button: showRequest(id, aboutOf({ command, target })),
    };
  });
  if (done.length === 0) return failures;
  const text = md`✏️ ${doneWords(done)}`;
  const details = showChanges(facts.since);
  return [...failures, { key: "done", count: done.length, text, button: details }];
}

/** The most groups, by command and person, that one line names. */
const maxGroups = 3;

function doneWords(requests: readonly RequestFact[]): Markdown {
  const groups = Map.groupBy(requests, ({ done, requester }) => `${done} ${requester}`);
  const more = groups.size - maxGroups;
  const all = [...groups.values()]
    .slice(0, maxGroups)
    .map(groupWords)
    .reduce((said, one) => md`${said}; ${one}`);
  return more > 0 ? md`${all} and ${more} more` : all;
}

/** One group, like `Restarted web-1, web-3 · olivia, 07:00`. */
function groupWords(group: readonly RequestFact[]): Markdown {
  const [newest] = group;
  if (!newest) return md``;
  const names = [...new Set(group.map(({ target }) => target.name))];
  const times = names.length === group.length ? "" : `, ${group.length} times`;
  const last = group.length === 1 ? "" : "last ";
  return md`${newest.done} ${listed(names)} · ${newest.requester}${times}, ${last}${dayAndTime(newest.changedAt)}`;
}
