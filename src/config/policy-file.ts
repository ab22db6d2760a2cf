import { createHash } from "node:crypto";
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
} from "yaml";
import type * as z from "zod";
import { canonical } from "../text/canonical-json.ts";
import { fold, globsOverlap, isGlob, matchesGlob } from "../text/glob.ts";
import { nearest } from "../text/nearest.ts";
import { printableLine } from "../text/terminal.ts";
import { durationWords, type Pace, policySchema, usualPace } from "./policy-schema.ts";
import { metBy } from "./seats.ts";

type Frozen<T> = { readonly [Key in keyof T]: Frozen<T[Key]> };

/**
 * gatehouse.yml with every default filled in and every duration in milliseconds. Access lists contain Slack user IDs
 * (`U…`, `W…`), user group IDs (`S…`), or `*` for every full member of the workspace.
 */
export type Policy = Frozen<
  z.output<typeof policySchema> & {
    /** What its rules can be about: a rename is judged by all that it takes a project out of. */
    operations: Operation[];
    timing: Pace;
  }
>;
export type Access = Policy["access"];
export type DigestRule = Policy["digests"][number];
export type Team = Policy["teams"][string];
export type AlertSource = Policy["sources"][string];
export type ServiceRule = Policy["services"][string];
export type Pin = Policy["attestation"]["pins"][number];

/** A command as `approvals` name it. */
export interface Operation {
  /** With a dot: `vm.restore`. */
  name: string;
  /** Whether a request of it can wait for approval. */
  mayNeedApproval: boolean;
  /** Whether it is about VMs. */
  isOnVm: boolean;
  /** Approvals where no rule matches. */
  byDefault: number;
  /** Approvals that no rule can do without. */
  atLeast: number;
}

/** A policy, and the text that it was read from. */
export interface ReadPolicy {
  policy: Policy;
  /** The line of a value, 1 for the first; undefined where the file doesn't have it. */
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

const longestText = 1_000_000;
/** More than that many characters take. */
export const mostPolicyBytes = 4 * longestText;

/** The policy without a file: everyone may view, no one may change anything. */
export function emptyPolicy(pace = usualPace): Policy {
  const { timing, ...rest } = policySchema.parse({});
  return { ...rest, timing: { ...pace, ...timing }, operations: [] };
}

/**
 * Reads gatehouse.yml. Problems begin with their place: `gatehouse.yml line 3: access.oprate isn't known; did you mean
 * operate?`. `operations` are all commands, which live to the right of here.
 */
export function parsePolicy(
  text: string,
  path: string,
  operations: readonly Operation[],
  pace = usualPace,
): ReadPolicy | { problems: readonly string[] } {
  if (text.length > longestText)
    return { problems: [`${path}: is larger than ${longestText} characters`] };
  const lines = new LineCounter();
  const lineAt = (offset = 0) => lines.linePos(offset).line;
  const told = (problems: readonly Problem[]) => ({
    problems: problems
      .toSorted((a, b) => (a.offset ?? 0) - (b.offset ?? 0))
      // A key may hold a line break, which must not make a line of its own
      .map(({ offset, sentence }) => printableLine(`${path} line ${lineAt(offset)}: ${sentence}`)),
  });
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  // An unknown tag is a warning only, and its value isn't read as it says
  const misread = [...document.errors, ...document.warnings];
  if (misread.length > 0)
    return told(misread.map((error) => ({ offset: error.pos[0], sentence: yamlWords(error) })));
  const unsaid = unsaidIn(document);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch {
    const bomb = { offset: 0, sentence: "the file has too many aliases" };
    return told(unsaid.length === 0 ? [bomb] : unsaid);
  }
  const read = policySchema.safeParse(value, { reportInput: true });
  const wrong = read.success
    ? nonsenseIn(read.data, operations, pace).map(({ path: at, message }) =>
        problemAt(at, message, document),
      )
    : read.error.issues.flatMap((issue) => problemsOf(issue, document));
  if (!read.success || unsaid.length + wrong.length > 0) return told([...unsaid, ...wrong]);
  const lineOf: ReadPolicy["lineOf"] = (at) =>
    document.hasIn(at) ? lineAt(place(at, document, false)) : undefined;
  for (const part of [read.data.approvals, read.data.teams]) linesOf.set(part, lineOf);
  const timing = { ...pace, ...read.data.timing };
  return { policy: { ...read.data, timing, operations: [...operations] }, lineOf };
}

/** Where a section was read from: a policy may be put together from the sections of two files. */
const linesOf = new WeakMap<object, ReadPolicy["lineOf"]>();

/** ` (line 12)` of a value under `approvals` or `teams`; empty where it was read from no file. */
export function lineWords(
  policy: Pick<Policy, "approvals" | "teams">,
  path: readonly ["approvals" | "teams", ...PropertyKey[]],
): string {
  const line = linesOf.get(policy[path[0]])?.(path);
  return line === undefined ? "" : ` (line ${line})`;
}

/** 12 hex digits over everything that decides who may do what. Changing timing or digests cancels nothing, nor where files are. */
export function policyVersion(policy: Policy): string {
  const { access, approvals, protect, channels, services, limits } = policy;
  const rights = Object.entries(policy.teams).map(
    ([name, team]) => [name, { ...team, digests: undefined }] as const,
  );
  const teams = Object.fromEntries(rights);
  const attestation = { ...policy.attestation, endorsements: undefined, refresh: undefined };
  // A service that may no longer come in must not find a process that hasn't heard of it
  const deciding = { access, teams, approvals, protect, channels, services, attestation, limits };
  return createHash("sha256").update(canonical(deciding)).digest("hex").slice(0, 12);
}

/** A problem of a document, with the offset of its place in the text. */
interface Problem {
  offset: number | undefined;
  sentence: string;
}

function problemAt(
  path: readonly PropertyKey[],
  message: string,
  document: Document,
  isOfKey = false,
): Problem {
  return {
    offset: place(path, document, isOfKey),
    sentence: `${pathText(path)} ${message}`.trim(),
  };
}

function yamlWords({ code, message }: YAMLError): string {
  if (code === "BAD_ALIAS") return `${message}; put a * in quotes ("*")`;
  return code === "MULTIPLE_DOCS" ? "begins a second document: a policy is one" : message;
}

function problemsOf(issue: z.core.$ZodIssue, document: Document): readonly Problem[] {
  // Of what is empty the schema has nothing to add
  if (issue.input === null) return [];
  if (issue.code !== "unrecognized_keys")
    return [problemAt(issue.path, complaint(issue), document)];
  const known = issue.message.split(" ");
  return issue.keys.map((key) => {
    const meant = nearest(key, known);
    const rest = meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
    return problemAt([...issue.path, key], `isn't known; ${rest}`, document, true);
  });
}

function complaint(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_type") return issue.message;
  if (issue.input === undefined) return "is missing";
  // A sentence of the schema's own, not zod's
  if (!issue.message.startsWith("Invalid input")) return issue.message;
  if (issue.expected === "array") return "must be a list, like [a, b]";
  if (issue.expected === "object") return "must contain `name: value` lines";
  return issue.expected === "string"
    ? 'must be text; put it in quotes ("…")'
    : `must be a ${issue.expected}`;
}

/**
 * Keys and items that a comment or a slip has emptied, and aliases that name nothing: none of them may count as absent,
 * because the default of what is absent may let in more than the line that was lost.
 */
function unsaidIn(document: Document): readonly Problem[] {
  const found: Problem[] = [];
  const anchors = new Map<string, Node>();
  const walk = (node: unknown, path: readonly PropertyKey[], above: readonly unknown[]): void => {
    const say = (words: string) => found.push(problemAt(path, words, document, true));
    if (isAlias(node)) {
      const { source } = node;
      const named = anchors.get(source);
      if (named === undefined)
        say(`is the alias *${source}, and no anchor &${source} is before it; put a glob in quotes`);
      else if (above.includes(named)) say(`is the alias *${source}, which contains it`);
      return;
    }
    if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        if (isScalar(key) && key.anchor !== undefined) anchors.set(key.anchor, key);
        walk(value, [...path, keyText(key)], [...above, node]);
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries())
        walk(item, [...path, index], [...above, node]);
    } else if (!isScalar(node) || node.value === null)
      say(path.length === 0 ? emptyFile : "is empty: give it a value, or remove it");
  };
  walk(document.contents, [], []);
  return found;
}

const emptyFile =
  "is empty: for a policy by which everyone can view and no one can change anything, write {}";

/** `approvals[1].targets[2]`: counted from 1, as people do. */
function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the file";
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part + 1}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** The offset of the value (or its key); for something missing, of its parent. */
function place(
  path: readonly PropertyKey[],
  document: Document,
  wantsKey: boolean,
): number | undefined {
  let node: unknown = document.contents;
  let offset = start(node);
  for (const [index, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item.key) === String(part));
      if (pair === undefined) break;
      const isKey = (wantsKey && index === path.length - 1) || start(pair.value) === undefined;
      offset = start(isKey ? pair.key : pair.value) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      offset = start(node) ?? offset;
    } else break;
  }
  return offset;
}

function start(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}

function keyText(key: unknown): string {
  return String(typeof key === "object" && key !== null && "value" in key ? key.value : key);
}

type Rules = z.output<typeof policySchema>;

interface Nonsense {
  path: readonly (string | number)[];
  /** Follows the name of the place. */
  message: string;
}

/** What no rule could enforce, and timings under which reads prove nothing, although each value is fine by itself. */
function nonsenseIn(
  rules: Rules,
  operations: readonly Operation[],
  pace: Pace,
): readonly Nonsense[] {
  return [
    ...unknownOperations(rules, operations),
    ...unclearCallers(rules),
    ...claimedTwice(rules),
    ...tooFew(rules),
    ...unsigned(rules),
    ...unsound({ ...pace, ...rules.timing }),
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

function unknownOperations(rules: Rules, operations: readonly Operation[]): Nonsense[] {
  const changes = operations.filter((one) => one.mayNeedApproval);
  const onVm = operations.filter((one) => one.isOnVm);
  const notProposed = "changes nothing, so it can't be proposed";
  const notOffered = "is not about a VM, so it can't be offered";
  return [
    ...rules.approvals.flatMap(({ operations: globs }, index) =>
      amiss(globs, ["approvals", index, "operations"], changes, "never needs approval"),
    ),
    ...Object.entries(rules.services).flatMap(([service, { propose }]) =>
      propose.flatMap(({ operations: globs }, index) =>
        amiss(globs, ["services", service, "propose", index, "operations"], changes, notProposed),
      ),
    ),
    ...Object.entries(rules.sources).flatMap(([source, { offer }]) => {
      const path = ["sources", source, "offer"];
      return [
        ...amiss(offer, path, onVm, notOffered),
        ...offer.flatMap((name, at) =>
          isGlob(name)
            ? [{ path: [...path, at], message: `(${name}) must be one command: each is a button` }]
            : [],
        ),
      ];
    }),
  ];

  /** Those of a list that name none of these commands; `isOther` is said of what names others alone. */
  function amiss(
    globs: readonly string[],
    path: Nonsense["path"],
    known: readonly Operation[],
    isOther: string,
  ): Nonsense[] {
    const names = known.map(({ name }) => name);
    return globs.flatMap((glob, at) => {
      const place = [...path, at];
      if (names.some((name) => matchesGlob(glob, name))) return [];
      if (operations.some(({ name }) => matchesGlob(glob, name)))
        return [{ path: place, message: `(${glob}) ${isOther}` }];
      const meant = names.find((name) => name.endsWith(`.${glob}`)) ?? nearest(glob, names);
      const rest = meant ? `did you mean ${meant}?` : `known are ${names.join(", ")}`;
      return [{ path: place, message: `(${glob}) is not a command; ${rest}` }];
    });
  }
}

/** `DOOR_SECRET_MY_PROMETHEUS` of the source `my-prometheus`. */
export const secretVariable = (source: string) =>
  `DOOR_SECRET_${source.toUpperCase().replaceAll("-", "_")}`;

/** Two callers of the door that nothing could tell apart: by name, by variable, or by token. */
function unclearCallers({ sources, services }: Rules): Nonsense[] {
  const names = Object.keys(sources);
  // NAME_FILE names the file of NAME
  const variableOf = (source: string) => secretVariable(source).replace(/_FILE$/, "");
  const tokens = Object.entries(services).flatMap(([service, { tokens: all }]) =>
    all.map((token, at) => ({ service, token, at })),
  );
  return [
    ...names.flatMap((source, index) => {
      const other = names.slice(0, index).find((one) => variableOf(one) === variableOf(source));
      const message = `would read its secret where ${other} does (${secretVariable(source)}): rename one`;
      return other === undefined ? [] : [{ path: ["sources", source], message }];
    }),
    ...names.flatMap((name) =>
      Object.hasOwn(services, name)
        ? [
            {
              path: ["services", name],
              message: "is a source, too: each caller needs a name of its own",
            },
          ]
        : [],
    ),
    ...tokens.flatMap(({ service, token, at }, index) => {
      const other = tokens.slice(0, index).find((one) => one.token === token);
      const message = `is the token of ${other?.service}, too: nobody could tell them apart`;
      return other === undefined ? [] : [{ path: ["services", service, "tokens", at], message }];
    }),
  ];
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
    return seats.filter(({ required }, index) => (met[index] ?? 0) < required);
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
