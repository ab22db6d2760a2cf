import { fold } from "../text/fold.ts";
import { coversGlob, globsOverlap, isGlob, matchesGlob } from "../text/glob.ts";
import { durationWords } from "./durations.ts";
import type { Pace, PolicyRules } from "./policy-schema.ts";
import { type Nonsense, type Operation, type PolicyTerms, sectionOf } from "./policy-section.ts";
import { operationsAmiss, sharedAmong } from "./policy-nonsense.ts";
import { couldApprove } from "./seats.ts";

type Rules = PolicyRules;

/**
 * Rules that could never be enforced, and timings under which reads prove nothing, although each
 * value is valid by itself.
 */
export function nonsenseIn(
  rules: Rules,
  { operations, sections }: PolicyTerms,
  pace: Pace,
): readonly Nonsense[] {
  return [
    ...unknownOperations(rules, operations),
    ...sharedTokens(rules),
    ...claimedTwice(rules),
    ...tooFew(rules),
    ...shadowed(rules, operations),
    ...unsigned(rules),
    ...unsound({ ...pace, ...rules.timing }),
    ...sections.flatMap(
      (section) => section.nonsenseIn?.(sectionOf(rules, section), operations, rules.teams) ?? [],
    ),
  ];
}

/** `access` and each team, with their rights. */
function placesIn({ access, teams }: Rules) {
  const ofTeams = Object.entries(teams).map(([team, rights]) => {
    const { projects } = rights;
    return { path: ["teams", team], rights, projects };
  });
  return [{ path: ["access"], rights: access, projects: undefined }, ...ofTeams];
}

function unknownOperations(rules: Rules, operations: readonly Operation[]): Nonsense[] {
  const among = operations.filter((operation) => operation.mayNeedApproval);
  const names = { among, operations };
  return [
    ...rules.approvals.flatMap(({ operations: globs }, index) =>
      operationsAmiss(globs, ["approvals", index, "operations"], {
        ...names,
        isOther: "never needs approval",
      }),
    ),
    ...Object.entries(rules.services).flatMap(([service, { propose }]) =>
      propose.flatMap(({ operations: globs }, index) =>
        operationsAmiss(globs, ["services", service, "propose", index, "operations"], {
          ...names,
          isOther: "changes nothing, so it can't be proposed",
        }),
      ),
    ),
  ];
}

/** Tokens of services that can't be told apart. */
const sharedTokens = ({ services }: Rules): Nonsense[] =>
  sharedAmong(
    Object.entries(services).flatMap(([name, { tokens }]) =>
      tokens.map((token, at) => ({
        name,
        credential: token,
        path: ["services", name, "tokens", at],
      })),
    ),
    "is the token of",
  );

/**
 * Rules that ask for more approvals than there are people who may approve. Only people who are
 * named one by one can be counted: Slack alone knows who is in a group, and where groups approve,
 * the request itself says that too few people could.
 */
function tooFew(rules: Rules): Nonsense[] {
  const { access, approvals } = rules;
  const all = placesIn(rules);
  const hasTeams = all.length > 1;
  // When there are teams, perhaps no project is left for `access`, and then nobody needs to approve
  // there.
  const places = hasTeams && access.approve.length === 0 ? all.slice(1) : all;
  const everyOperator = all.flatMap(({ rights }) => rights.operate);
  return approvals.flatMap(({ required, votes }, index) => {
    if (votes !== undefined) {
      const seats = votes.map((need, at) => ({ ...need, at }));
      const { empty, isSpared } = unfilled(seats, everyOperator);
      const spared = isSpared ? ", the requester doesn't count" : "";
      return empty.map((seat) => ({
        path: ["approvals", index, "votes", seat.at, "required"],
        message: `is ${seat.required}, but too few people are named${spared}, and each counts once: requests could never be approved`,
      }));
    }
    return places.flatMap(({ path, rights, projects }) => {
      const { empty, isSpared } = unfilled([{ from: rights.approve, required }], rights.operate);
      if (empty.length === 0 || (hasTeams && !decides(approvals, index, projects))) return [];
      const size = new Set(rights.approve).size;
      const who = `${path.join(".")}.approve names ${size === 1 ? "1 person" : `${size} people`}${isSpared ? ", and the requester doesn't count" : ""}`;
      const message = `is ${required}, but ${who}: requests could never be approved`;
      return [{ path: ["approvals", index, "required"], message }];
    });
  });
}

/**
 * The seats that too few people are named for. One person fills one seat, and nobody fills a seat
 * of their own request. So when everyone who may ask is named as an approver, too, the seats must
 * still be filled without at least one of them.
 */
export function unfilled<Seat extends { from: readonly string[]; required: number }>(
  all: readonly Seat[],
  operators: readonly string[],
): { empty: readonly Seat[]; isSpared: boolean } {
  const emptyWithout = (requester?: string) =>
    couldApprove(all, ({ from }) =>
      from.every(isUser) ? from.filter((id) => id !== requester) : undefined,
    ).lacking;
  const empty = emptyWithout();
  if (empty.length > 0 || !operators.every(isUser)) return { empty, isSpared: false };
  const isShort = operators.length > 0 && operators.every((id) => emptyWithout(id).length > 0);
  return { empty: isShort ? emptyWithout(operators.at(-1)) : [], isSpared: true };
}

/**
 * Whether a rule is certainly the first match for something of a team (`projects`), or of what has
 * no team.
 */
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
        other.operations.some((glob) => rule.operations.some((two) => globsOverlap(glob, two))),
    );
}

/**
 * Entries of `approvals`, and commands in them, that earlier entries leave nothing to: the first
 * match decides.
 */
function shadowed({ approvals }: Rules, operations: readonly Operation[]): Nonsense[] {
  const names = operations.flatMap(({ name, mayNeedApproval }) => (mayNeedApproval ? [name] : []));
  return approvals.flatMap((rule, index) => {
    const earlier = approvals.slice(0, index);
    const globs = rule.operations.map((glob, at) => {
      const matching = names.filter((name) => matchesGlob(glob, name));
      const decidingRules = matching.map((name) =>
        earlier.findIndex((other) => decidesBefore(other, rule, name)),
      );
      return {
        glob,
        at,
        decidingRules,
        isNever: decidingRules.length > 0 && !decidingRules.includes(-1),
      };
    });
    const never = globs.filter(({ isNever }) => isNever);
    const why = (decidingRules: readonly number[]) => {
      const entries = [...new Set(decidingRules)]
        .toSorted((a, b) => a - b)
        .map((at) => `approvals[${at + 1}]`);
      const isOne = entries.length === 1;
      return `can never apply: ${inList.format(entries)} ${isOne ? "comes first and matches" : "come first and match"} the same; put the narrower or stricter one first, or merge them`;
    };
    if (never.length === globs.length)
      return [
        {
          path: ["approvals", index],
          message: why(never.flatMap(({ decidingRules }) => decidingRules)),
        },
      ];
    return never.map(({ glob, at, decidingRules }) => ({
      path: ["approvals", index, "operations", at],
      message: `(${glob}) ${why(decidingRules)}`,
    }));
  });
}

const inList = new Intl.ListFormat("en-US");
type Approval = Readonly<{
  operations: readonly string[];
  targets?: readonly string[] | undefined;
}>;

/** Whether an entry decides about this command on everything that a later one names. */
export function decidesBefore(earlier: Approval, later: Approval, name: string): boolean {
  const { operations, targets } = earlier;
  if (!operations.some((glob) => matchesGlob(glob, name))) return false;
  if (targets === undefined) return true;
  return (
    later.targets?.every((target) => targets.some((wider) => coversTarget(wider, target))) === true
  );
}

/** A glob without a slash also matches everything in a project of that name. */
function coversTarget(wider: string, other: string): boolean {
  const [a, b] = [fold(wider), fold(other)];
  const [project = "", ...names] = b.split("/");
  const isInside =
    !a.includes("/") && names.some((name) => [project, name].some((part) => coversGlob(a, part)));
  return isInside || (a.includes("/") === b.includes("/") && coversGlob(a, b));
}

/** A project has one team, so no two teams may claim the same name. */
function claimedTwice({ teams }: Rules): Nonsense[] {
  const all = Object.entries(teams).flatMap(([team, { projects }]) =>
    projects.map((entry, at) => ({ team, entry, at, folded: fold(entry), glob: isGlob(entry) })),
  );
  const globs = all.filter(({ glob }) => glob);
  const equal = Map.groupBy(all, ({ folded }) => folded);
  return all.flatMap(({ team, entry, at, folded, glob }) => {
    const among = glob ? all : [...(equal.get(folded) ?? []), ...globs];
    const other = among.find((claim) => claim.team !== team && globsOverlap(claim.folded, folded));
    if (!other) return [];
    const claimedEntry =
      other.entry === entry ? entry : `${entry}, which can be what ${other.entry} is,`;
    return [
      {
        path: ["teams", team, "projects", at],
        message: `(${claimedEntry}) is claimed by the team ${other.team} too: a project has one team`,
      },
    ];
  });
}

/**
 * A review must be signed by an administrator, or by an approver of the affected target, who isn't
 * the person who broke the glass.
 */
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

/** Timings that would break a promise. */
function unsound(timing: Rules["timing"] & Pace): Nonsense[] {
  const { claimWindowMs, heartbeatMs, httpTimeoutMs, quiesceMs } = timing;
  const leastTimeoutMs = heartbeatMs - claimWindowMs;
  const quietMs = claimWindowMs + 2 * httpTimeoutMs;
  const stableMs = quiesceMs + 2 * timing.stableGapMs;
  const problems = {
    httpTimeout:
      httpTimeoutMs < leastTimeoutMs &&
      `must be at least ${durationWords(leastTimeoutMs)}: a worker that dies must be missed while its claim is young`,
    quiesce:
      quiesceMs < quietMs &&
      `must be at least ${durationWords(claimWindowMs)} + 2 × httpTimeout (${durationWords(quietMs)}): sooner, a call may still be under way, and reads prove nothing`,
    settleDeadline:
      timing.settleDeadlineMs <= stableMs &&
      `must be more than quiesce + ${durationWords(2 * timing.stableGapMs)} (${durationWords(stableMs)}): otherwise it ends before reads count`,
  };
  return Object.entries(problems).flatMap(([key, message]) =>
    message === false ? [] : [{ path: ["timing", key], message }],
  );
}
