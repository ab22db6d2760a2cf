import { fold, globsOverlap, isGlob, matchesGlob } from "../text/glob.ts";
import { nearest } from "../text/nearest.ts";
import { durationWords, type Timing } from "./policy-values.ts";
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
    ...tooFew(rules),
    ...unsigned(rules),
    ...unsound(rules.timing),
  ];
}

/** `access`, and each team, with what people may do there. */
function placesIn({ access, teams }: Rules) {
  const ofTeams = Object.entries(teams).map(([team, rights]) => {
    const { projects } = rights;
    return { path: ["teams", team], rights, projects };
  });
  return [{ path: ["access"], rights: access, projects: undefined }, ...ofTeams];
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
 * Rules that ask for more than those who may approve are people. Only people named one by one can be counted: who is in a group
 * is known to Slack alone, and where groups approve, the request itself says that too few could.
 */
function tooFew(rules: Rules): Nonsense[] {
  const { access, approvals } = rules;
  const all = placesIn(rules);
  const hasTeams = all.length > 1;
  // With teams perhaps nothing is left for access, and then nobody need approve there
  const places = hasTeams && access.approve.length === 0 ? all.slice(1) : all;
  const everyOperator = all.flatMap(({ rights }) => rights.operate);
  return approvals.flatMap(({ required, votes }, index) => {
    if (votes !== undefined) {
      const seats = votes.map((need, at) => ({ ...need, at }));
      const { empty, isSpared } = unfilled(seats, everyOperator);
      const spared = isSpared ? ", the requester doesn't count" : "";
      return empty.map((seat) => ({
        path: ["approvals", index, "votes", seat.at, "required"],
        message: `is ${seat.required}, but too few people are named${spared}, and each counts once: nobody could ever approve enough`,
      }));
    }
    return places.flatMap(({ path, rights, projects }) => {
      const { empty, isSpared } = unfilled([{ from: rights.approve, required }], rights.operate);
      if (empty.length === 0 || (hasTeams && !decides(approvals, index, projects))) return [];
      const size = new Set(rights.approve).size;
      const who = `${path.join(".")}.approve names ${size === 1 ? "1 person" : `${size} people`}${isSpared ? ", and the requester doesn't count" : ""}`;
      const message = `is ${required}, but ${who}: nobody could ever approve enough`;
      return [{ path: ["approvals", index, "required"], message }];
    });
  });
}

/**
 * The seats that too few people are named for. Each fills one, and nobody a seat of their own request: where all who may ask are
 * named too, no seat may depend on each of them.
 */
function unfilled<Seat extends { from: readonly string[]; required: number }>(
  all: readonly Seat[],
  operators: readonly string[],
): { empty: readonly Seat[]; isSpared: boolean } {
  const seats = all.filter(({ from }) => from.every(isUser));
  const named = [...new Set(seats.flatMap(({ from }) => from))];
  const emptyWithout = (requester?: string) => {
    const others = named.filter((id) => id !== requester);
    const met = metBy(seats, others, ({ from }, id) => from.includes(id));
    return seats.filter(({ required }, place) => (met[place] ?? 0) < required);
  };
  const empty = emptyWithout();
  if (empty.length > 0 || !operators.every(isUser)) return { empty, isSpared: false };
  const isShort = operators.length > 0 && operators.every((id) => emptyWithout(id).length > 0);
  return { empty: isShort ? emptyWithout(operators.at(-1)) : [], isSpared: true };
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
function unsigned(rules: Rules): Nonsense[] {
  return placesIn(rules).flatMap(({ path, rights: { approve, breakGlass } }) => {
    const reviewers = [...rules.access.administer, ...approve];
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
function unsound(timing: Timing): Nonsense[] {
  const { claimWindowMs, httpTimeoutMs, quiesceMs } = timing;
  const quietMs = claimWindowMs + 2 * httpTimeoutMs;
  const youngMs = claimWindowMs + httpTimeoutMs;
  const stableMs = quiesceMs + 2 * timing.stableGapMs;
  const problems = {
    quiesce:
      quiesceMs < quietMs &&
      `must be at least claimWindow + 2 × httpTimeout (${durationWords(quietMs)}): sooner, a call may still be under way, and reads prove nothing`,
    heartbeat:
      timing.heartbeatMs > youngMs &&
      `must be at most claimWindow + httpTimeout (${durationWords(youngMs)}): a worker that dies must be missed while its claim is young`,
    settleDeadline:
      timing.settleDeadlineMs <= stableMs &&
      `must be more than quiesce + 2 × stableGap (${durationWords(stableMs)}): otherwise it ends before reads count`,
    peopleCache:
      timing.peopleCacheMs > 60_000 &&
      "must be at most 60s: rights are checked right before a send, as they are then",
    pollMost: timing.pollMostMs < timing.pollFirstMs && "must be at least pollFirst",
  };
  return Object.entries(problems).flatMap(([key, message]) =>
    message === false ? [] : [{ path: ["timing", key], message }],
  );
}
