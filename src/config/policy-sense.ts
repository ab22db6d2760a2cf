import { fold, globsOverlap, isGlob, matchesGlob } from "../text/glob.ts";
import { nearest } from "../text/nearest.ts";
import type { Timing } from "./policy-values.ts";

/** The parts that must fit together. */
interface Rules {
  access: Record<"approve" | "operate" | "administer" | "breakGlass", readonly string[]>;
  approvals: readonly {
    operations: readonly string[];
    required: number;
    votes?: readonly { from: readonly string[]; required: number }[] | undefined;
  }[];
  teams: Readonly<Record<string, { projects: readonly string[]; approve: readonly string[] }>>;
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
    ...(Object.keys(rules.teams).length > 0 ? [] : tooMany(rules)),
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

/** Members of groups are known only to Slack: where one approves, the request itself says that too few could. */
function tooMany({ access, approvals }: Rules): Nonsense[] {
  if (access.approve.some((entry) => !isUser(entry))) return [];
  const approvers = new Set(access.approve);
  const operators = access.operate.every(isUser) ? new Set(access.operate) : undefined;
  // Nobody decides on their own request: where every operator approves too, there is one fewer
  const isSpared = operators && operators.size > 0 && operators.isSubsetOf(approvers);
  const most = approvers.size - (isSpared ? 1 : 0);
  const names = approvers.size === 1 ? "1 person" : `${approvers.size} people`;
  return approvals.flatMap(({ required, votes }, index) =>
    votes !== undefined || required <= most
      ? []
      : [
          {
            path: ["approvals", index, "required"],
            message: `is ${required}, but access.approve names ${names}${isSpared ? ", and the requester doesn't count" : ""}: nobody could ever approve enough`,
          },
        ],
  );
}

/** Only people named one by one can be counted. */
function tooManyVotes({ approvals }: Rules): Nonsense[] {
  return approvals.flatMap(({ votes = [] }, index) => {
    const counted = [...votes.entries()].filter(([, { from }]) => from.every(isUser));
    const all = new Set(counted.flatMap(([, { from }]) => from));
    const inAll = counted.reduce((sum, [, { required }]) => sum + required, 0);
    return counted.flatMap(([at, { from, required }]) =>
      new Set(from).size >= required && all.size >= inAll
        ? []
        : [
            {
              path: ["approvals", index, "votes", at, "required"],
              message: `is ${required}, but too few people are named, and each counts once: nobody could ever approve enough`,
            },
          ],
    );
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

/** A review is signed by an administrator or an approver other than who broke the glass. */
function unsigned({ access }: Rules): Nonsense[] {
  const reviewers = [...access.administer, ...access.approve];
  if (reviewers.some((entry) => !isUser(entry))) return [];
  return access.breakGlass.flatMap((entry, index) =>
    reviewers.some((other) => other !== entry)
      ? []
      : [
          {
            path: ["access", "breakGlass", index],
            message: `(${entry}) could never get a review signed: add someone else to access.administer or access.approve`,
          },
        ],
  );
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
