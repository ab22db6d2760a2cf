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
import type { Event } from "../../core/events/event.ts";
import { type Fact, isTrouble } from "../../core/facts/fact.ts";
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
import type { OpenRequest } from "./open-requests.ts";

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
  /** What else is wrong with VMs now, the most urgent first. */
  troubles?: readonly Fact[] | undefined;
  /** The present freeze. */
  frozen?: Freeze | undefined;
  /** How full Redis is; only where the digest is about everything. */
  memory?: MemoryUse | undefined;
  /** What happened, in order. */
  events?: readonly Event[] | undefined;
  /** How many the channel sees, where this is about some of them. */
  seen?: number | undefined;
  /** When a VM with a problem entered its status, by ID (ms). */
  statusSince: ReadonlyMap<string, number>;
  refreshedAt?: number | undefined;
  stale: boolean;
  unreadProjects: readonly string[];
  /** What the compute service gave only in part, as text. */
  gaps?: readonly string[] | undefined;
  open?: readonly OpenRequest[] | undefined;
  unread: readonly string[];
  /** What was read only in part, like `the newest 1,000 requests`. */
  cut?: readonly string[] | undefined;
  /** A VM that is in a transition for longer is stuck (ms). */
  stuckAfterMs: number;
}

/** How full Redis is. */
export interface MemoryUse {
  words: string;
  isNearlyFull: boolean;
  /** What to do about it, in sentences. */
  mend: string;
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
              text: md`🟠 Redis is nearly full (${memory.words}). ${memory.mend}`,
              button: undefined,
            },
          ]
        : [],
  },
  error: { place: "trouble", words: ["VM in ERROR", "VMs in ERROR"], lines: errorLines },
  stuck: { place: "trouble", words: ["VM stuck", "VMs stuck"], lines: stuckLines },
  trouble: {
    place: "trouble",
    words: ["other trouble of a VM", "other troubles of VMs"],
    lines: ({ troubles = [] }) => troubles.flatMap(troubleLine),
  },
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
} as const satisfies Record<string, OwnKind>;

export interface Item extends Line, KindOfLine {
  kind: string;
  isLasting: boolean;
}

/** All lines, the most urgent first. Within one place, lines of features come last. */
export function itemsOf(facts: DigestFacts): Item[] {
  const { parts = [] } = facts;
  const own = Object.entries<OwnKind>(ownKinds).map(([kind, { lines, ...how }]): LinesOfKind => ({
    kind,
    lines: lines(facts),
    ...how,
  }));
  const all = [...own, ...parts.flatMap((part) => part.all)];
  const items = all.flatMap(({ lines, isLasting = false, ...how }) =>
    lines.map((line): Item => ({ ...line, ...how, isLasting })),
  );
  const allItems = [...items, ...eventItems(facts)];
  return digestPlaces.flatMap((place) => allItems.filter((item) => item.place === place));
}

/** What a button about a request is about. */
const aboutOf = ({ command, target }: Pick<OpenRequest, "command" | "target">) =>
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

/** Kinds of facts that every digest tells in words of its own. */
const ownFacts: readonly string[] = ["status", "outcome"];

/** The facts that a digest tells as they are: troubles that no other line of it is about. */
export const troublesIn = (
  facts: readonly Fact[],
  toldByParts: readonly string[],
): readonly Fact[] =>
  facts.filter(
    (fact) => isTrouble(fact) && !ownFacts.includes(fact.kind) && !toldByParts.includes(fact.kind),
  );

function troubleLine({ kind, about, sign, text, since = 0 }: Fact): Line[] {
  if (!about) return [];
  const button = about.kind === "vm" ? showVm(about) : undefined;
  return [{ key: `${kind}:${about.id}:${since}`, text: md`${sign} ${text}`, button }];
}

function oldestFirst({ open = [] }: DigestFacts, state: string): OpenRequest[] {
  const inState = open.filter((request) => request.state === state);
  return inState.toSorted((a, b) => a.createdAt - b.createdAt);
}

function frozenLine({ by: person, reason, at }: Freeze, now: number): Line {
  const text = withFullStop(
    md`🧊 *${person} froze all changes* ${atTime(at, now)}${quoted(reason)}`,
  );
  return { key: String(at), text, button: undefined };
}

/** What is over since the last digest, each as the night tells it. */
function eventItems({ events = [], parts = [], since }: DigestFacts): Item[] {
  const toldElsewhere = new Set(parts.flatMap(({ tellsOf = [] }) => [...tellsOf]));
  const over = events.filter(
    ({ id, endedAt, kind: { weight } }) =>
      endedAt !== undefined && endedAt > since && weight !== "detail" && !toldElsewhere.has(id),
  );
  // What differs only in its target is told where the last of it happened.
  const groups = Map.groupBy(over, ({ id, deed }) => deed?.begin.value ?? id);
  return [...groups.values()]
    .flatMap((group) => {
      const last = group.at(-1);
      return last ? { event: last, targets: group.map(({ deed }) => deed?.target ?? "") } : [];
    })
    .toSorted((act, other) => act.event.at - other.event.at)
    .map(({ event, targets }): Item => ({
      key: event.id,
      kind: event.kind.words[1],
      words: event.kind.words,
      place: "event",
      isLasting: true,
      count: targets.length,
      text: targets.length > 1 ? togetherWords(event, targets) : aloneWords(event),
      button: targets.length > 1 ? undefined : event.button,
    }));
}

const aloneWords = ({ at, text }: Event): Markdown => md`${dayAndTime(at)} ${text}`;

/** `11:54 AM ✅ olivia restarted web-1, web-3, 4 times.` */
function togetherWords({ at, deed }: Event, targets: readonly string[]): Markdown {
  const names = [...new Set(targets)];
  const times = names.length === targets.length ? "" : `, ${targets.length} times`;
  return md`${dayAndTime(at)} ${deed?.begin ?? ""} ${listed(names)}${times}.`;
}
