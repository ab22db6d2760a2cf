import { fold, globsOverlap, isGlob, matchesGlob } from "../text/glob.ts";
import { nearest } from "../text/nearest.ts";
import type { Timing } from "./policy-values.ts";
import { metBy } from "./seats.ts";

/** The parts that must fit together. */
interface Rules {
  access: Record<"approve" | "operate" | "administer" | "breakGlass", readonly string[]>;
  approvals: readonly {
    operations: readonly string[];
    targets?: readonly string[] | undefined;
    required: number;
    votes?: readonly { from: readonly string[]; required: number }[] | undefined;
  }[];
  teams: Readonly<
    Record<string, Record<"projects" | "approve" | "operate" | "breakGlass", readonly string[]>>
  >;
  timing: Timing;
}

/** A command as `approvals` name it. */
export interface Operation {
  /** With a dot: `vm.restore`. */
  name: string;
  /** Whether a request of it can wait for approval. */
  mayNeedApproval: boolean;
  /** Approvals where no rule matches. */
  byDefault: number;
  /** Approvals that no rule can do without. */
  atLeast: number;
}

interface Nonsense {
  path: readonly (string | number)[];
  /** Follows the name of the place. */
  message: string;
}

/** What no rule could enforce, and timings under which reads prove nothing, although each value is fine by itself. */
export function nonsenseIn(rules: Rules, operations: readonly Operation[]): readonly Nonsense[] {
  return [
    ...unknownOperations(rules, operations),
    ...claimedTwice(rules),
    ...tooMany(rules),
    ...tooManyVotes(rules),
    ...unsigned(rules),
    ...unsound(rules.timing),
  ];
}

function unknownOperations({ approvals }: Rules, operations: readonly Operation[]): Nonsense[] {
  const approvable = operations.filter((one) => one.mayNeedApproval).map(({ name }) => name);
  return approvals.flatMap((rule, index) =>
    rule.operations.flatMap((glob, at) => {
      const path = ["approvals", index, "operations", at];
      if (approvable.some((name) => matchesGlob(glob, name))) return [];
      if (operations.some(({ name }) => matchesGlob(glob, name)))
        return [{ path, message: `(${glob}) changes nothing that could wait for approval` }];
      const meant =
        approvable.find((name) => name.endsWith(`.${glob}`)) ?? nearest(glob, approvable);
      const rest = meant ? `did you mean ${meant}?` : `known are ${approvable.join(", ")}`;
      return [{ path, message: `(${glob}) is no command; ${rest}` }];
    }),
  );
}

/**
 * Rules that ask for more approvals than those who may give them are people. Members of groups are known only to Slack: where one
 * approves, the request itself says that too few could.
 */
function tooMany(rules: Rules): Nonsense[] {
  const { access, teams, approvals } = rules;
  const hasTeams = Object.keys(teams).length > 0;
  const places = [
    // With teams perhaps nothing is left for access, and then nobody need approve there
    ...(hasTeams && access.approve.length === 0 ? [] : [{ place: "access", rights: access }]),
    ...Object.entries(teams).map(([team, rights]) => ({ place: `teams.${team}`, rights })),
  ];
  return approvals.flatMap(({ required, votes }, index) => {
    if (votes !== undefined) return [];
    return places.flatMap(({ place, rights }) => {
      const projects = "projects" in rights ? rights.projects : undefined;
      const { most, who } = mostApprovals(rights, place);
      if (most === undefined || required <= most) return [];
      if (hasTeams && !decides(rules.approvals, index, projects)) return [];
      const message = `is ${required}, but ${who}: nobody could ever approve enough`;
      return [{ path: ["approvals", index, "required"], message }];
    });
  });
}

/** How many people could approve there; undefined where groups or everyone may. */
function mostApprovals(
  { approve, operate }: Record<"approve" | "operate", readonly string[]>,
  place: string,
): { most: number | undefined; who: string } {
  if (approve.some((entry) => !isUser(entry))) return { most: undefined, who: "" };
  const approvers = new Set(approve);
  const operators = operate.every(isUser) ? new Set(operate) : undefined;
  // Nobody decides on their own request: where every operator approves too, there is one fewer
  const isSpared = operators && operators.size > 0 && operators.isSubsetOf(approvers);
  const names = approvers.size === 1 ? "1 person" : `${approvers.size} people`;
  const who = `${place}.approve names ${names}${isSpared ? ", and the requester doesn't count" : ""}`;
  return { most: approvers.size - (isSpared ? 1 : 0), who };
}

/** Whether a rule surely is the first for something of a team (`projects`), or of what no team has. */
function decides(
  approvals: Rules["approvals"],
  index: number,
  projects: readonly string[] | undefined,
): boolean {
  const isAbout = ({ targets }: Rules["approvals"][number]) =>
    targets === undefined ||
    targets.some((glob) =>
      (projects ?? []).some((entry) => globsOverlap(fold(glob.split("/")[0] ?? ""), fold(entry))),
    );
  const rule = approvals[index];
  if (!rule || !isAbout(rule)) return false;
  return !approvals
    .slice(0, index)
    .some(
      (other) =>
        isAbout(other) &&
        other.operations.some((one) => rule.operations.some((two) => globsOverlap(one, two))),
    );
}

/**
 * Only people named one by one can be counted. Each fills one seat, and nobody a seat of their own request: where all who may ask
 * are named too, no seat may depend on each of them.
 */
function tooManyVotes({ access, teams, approvals }: Rules): Nonsense[] {
  const operators = [access, ...Object.values(teams)].flatMap(({ operate }) => operate);
  const isKnown = operators.length > 0 && operators.every(isUser);
  return approvals.flatMap(({ votes = [] }, index) => {
    const seats = votes
      .map((need, at) => ({ ...need, at }))
      .filter(({ from }) => from.every(isUser));
    const named = [...new Set(seats.flatMap(({ from }) => from))];
    const emptyWithout = (requester?: string) => {
      const others = named.filter((id) => id !== requester);
      const met = metBy(seats, others, ({ from }, id) => from.includes(id));
      return seats.filter(({ required }, place) => (met[place] ?? 0) < required);
    };
    const everyone = emptyWithout();
    const empty =
      everyone.length > 0 || !isKnown
        ? everyone
        : operators.reduce(
            (fewest, id) => (fewest.length === 0 ? fewest : emptyWithout(id)),
            emptyWithout(operators[0]),
          );
    const spared = everyone.length > 0 ? "" : ", the requester doesn't count";
    return empty.map(({ at, required }) => ({
      path: ["approvals", index, "votes", at, "required"],
      message: `is ${required}, but too few people are named${spared}, and each counts once: nobody could ever approve enough`,
    }));
  });
}

/** A project has one team: no name may be claimed by two. */
function claimedTwice({ teams }: Rules): Nonsense[] {
  const all = Object.entries(teams).flatMap(([team, { projects }]) =>
    projects.map((entry, at) => ({ team, entry, at, folded: fold(entry), glob: isGlob(entry) })),
  );
  const globs = all.filter(({ glob }) => glob);
  const equal = Map.groupBy(all, ({ folded }) => folded);
  return all.flatMap(({ team, entry, at, folded, glob }) => {
    const among = glob ? all : [...(equal.get(folded) ?? []), ...globs];
    const other = among.find((one) => one.team !== team && globsOverlap(one.folded, folded));
    if (!other) return [];
    const what = other.entry === entry ? entry : `${entry}, which can be what ${other.entry} is,`;
    return [
      {
        path: ["teams", team, "projects", at],
        message: `(${what}) is claimed by the team ${other.team} too: a project has one team`,
      },
    ];
  });
}

/** A review is signed by an administrator, or an approver of what it was about, other than who broke the glass. */
function unsigned({ access, teams }: Rules): Nonsense[] {
  const places = [
    { path: ["access"], rights: access },
    ...Object.entries(teams).map(([team, rights]) => ({ path: ["teams", team], rights })),
  ];
  return places.flatMap(({ path, rights: { approve, breakGlass } }) => {
    const reviewers = [...access.administer, ...approve];
    if (reviewers.some((entry) => !isUser(entry))) return [];
    return breakGlass.flatMap((entry, index) =>
      reviewers.some((other) => other !== entry)
        ? []
        : [
            {
              path: [...path, "breakGlass", index],
              message: `(${entry}) could never get a review signed: add someone else to access.administer or ${path.join(".")}.approve`,
            },
          ],
    );
  });
}

function isUser(entry: string): boolean {
  return /^[UW]/.test(entry);
}

/** What the promise needs of the durations. */
const needs: readonly {
  key: string;
  holds(timing: Timing): boolean;
  message(timing: Timing): string;
}[] = [
  {
    key: "quiesce",
    holds: (timing) => timing.quiesceMs >= quietEnough(timing),
    message: (timing) =>
      `must be at least claimWindow + 2 × httpTimeout (${shown(quietEnough(timing))}): sooner, a call may still be under way, and reads prove nothing`,
  },
  {
    key: "heartbeat",
    holds: (timing) => timing.heartbeatMs <= timing.claimWindowMs + timing.httpTimeoutMs,
    message: (timing) =>
      `must be at most claimWindow + httpTimeout (${shown(timing.claimWindowMs + timing.httpTimeoutMs)}): a worker that dies must be missed while its claim is young`,
  },
  {
    key: "settleDeadline",
    holds: (timing) => timing.settleDeadlineMs > timing.quiesceMs + 2 * timing.stableGapMs,
    message: (timing) =>
      `must be more than quiesce + 2 × stableGap (${shown(timing.quiesceMs + 2 * timing.stableGapMs)}): otherwise it ends before reads count`,
  },
  {
    key: "peopleCache",
    holds: (timing) => timing.peopleCacheMs <= longestCacheMs,
    message: () =>
      `must be at most ${shown(longestCacheMs)}: rights are checked right before a send, as they are then`,
  },
  {
    key: "pollMost",
    holds: (timing) => timing.pollMostMs >= timing.pollFirstMs,
    message: () => "must be at least pollFirst",
  },
];

const longestCacheMs = 60_000;

function quietEnough({ claimWindowMs, httpTimeoutMs }: Timing): number {
  return claimWindowMs + 2 * httpTimeoutMs;
}

function unsound(timing: Timing): Nonsense[] {
  return needs.flatMap(({ key, holds, message }) =>
    holds(timing) ? [] : [{ path: ["timing", key], message: message(timing) }],
  );
}

function shown(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
