import { createHash } from "node:crypto";
import type { Document } from "yaml";
import * as z from "zod";
import { attestationSection } from "./attestation-section.ts";
import { canonical } from "../text/canonical-json.ts";
import { printableLine } from "../text/printable.ts";
import { nearest } from "../text/nearest.ts";
import { nonsenseIn, type Operation } from "./policy-sense.ts";
import { pathText, place, type Problem, readYaml } from "./policy-yaml.ts";
import {
  timing,
  channel,
  count,
  days,
  duration,
  glob,
  matching,
  operation,
  section,
  timeOfDay,
  timezone,
  who,
} from "./policy-values.ts";

const people = (fallback: string[] = []) => z.array(who).default(fallback);

/** When a channel gets its digest. */
const digest = {
  /** Local time, `HH:MM`. */
  at: timeOfDay,
  timezone: timezone.default("UTC"),
  days: days.prefault("daily"),
  /** Globs over VM and project names: it speaks of these alone. */
  targets: z.array(glob).min(1, "must name at least one VM or project").optional(),
};

const teamName = matching(
  /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,39}$/,
  "must be a team's name of letters, digits, - and _",
);

const teamProject = matching(
  /^[^\s,/]{1,200}$/,
  "must be a project's ID, its name, or a glob like payments-*, without spaces or slashes",
);

/**
 * Who may do what with the projects of a team. `access` is for what no team has; its administrators are for everybody. Whoever
 * may operate, approve, or break glass for a team sees it too.
 */
const team = section({
  /** Project IDs, names, or globs over names. A VM belongs to its project's team. */
  projects: z.array(teamProject).min(1, "must name at least one project"),
  view: people(),
  operate: people(),
  approve: people(),
  breakGlass: people(),
  /** Where the team's approvals, alerts, unknown outcomes, and recaps go when they arise elsewhere. */
  channel: channel.optional(),
  /** Posted in the team's channel. */
  digests: z.array(section(digest)).default([]),
}).refine(({ channel: where, digests }) => where !== undefined || digests.length === 0, {
  path: ["digests"],
  error: "have no place: add `channel` to the team",
});

type Frozen<T> = { readonly [Key in keyof T]: Frozen<T[Key]> };

/**
 * gatehouse.yml with every default filled in and every duration in milliseconds. Access lists contain Slack user IDs
 * (`U…`, `W…`), user group IDs (`S…`), or `*` for every full member of the workspace.
 */
export type Policy = Frozen<
  z.output<typeof policySchema> & {
    /** What its rules can be about: a rename is judged by all that it takes a project out of. */
    operations: Operation[];
  }
>;
export type Access = Policy["access"];
export type DigestRule = Policy["digests"][number];
export type Team = Policy["teams"][string];
export type Pin = Policy["attestation"]["pins"][number];

const policySchema = section({
  access: section({
    view: people(["*"]),
    operate: people(),
    approve: people(),
    administer: people(),
    breakGlass: people(),
  }).prefault({}),
  /** First match wins; without a match, destructive commands need one approval. */
  approvals: z
    .array(
      section({
        /** Globs over command names written with a dot: `vm.restore`, `vm.*`. */
        operations: z.array(operation).min(1, "must name at least one command"),
        /** Globs over VM or project names; undefined: all. */
        targets: z
          .array(glob)
          .min(1, "must name at least one VM or project, or be omitted for all")
          .optional(),
        /** From those who may approve on the target; 0: it runs at once. */
        required: count(0, 20).optional(),
        /** Instead of `required`: each must be met, and one person counts once. */
        votes: z
          .array(
            section({
              /** User IDs, user group IDs, or `*`. */
              from: z.array(who).min(1, "must name at least one person or group"),
              required: count(1, 20).default(1),
            }),
          )
          .min(1, "must contain at least one entry")
          .optional(),
        expires: duration.optional(),
      }).refine(({ required, votes }) => (required === undefined) !== (votes === undefined), {
        error: "must contain either `required` or `votes`",
      }),
    )
    .default([]),
  teams: z.record(teamName, team).default({}),
  /** Globs over VM and project names: what interrupts one of them while it runs is confirmed once. */
  confirm: z.array(glob).default([]),
  /** Globs over VM and project names: never restored, deleted, stopped, resized, or renamed from Slack. */
  protect: z.array(glob).default([]),
  /** Where changing commands are accepted; undefined: everywhere. */
  channels: z.array(channel).min(1, "must name at least one channel, or be omitted").optional(),
  /** Shared with another company, and posted in all the same. */
  sharedChannels: z.array(channel).default([]),
  audit: section({ channel }).optional(),
  alerts: section({ channel }).optional(),
  digests: z.array(section({ channel, ...digest })).default([]),
  attestation: attestationSection,
  limits: section({
    /** Of one person: changes, break-glass, and consoles. */
    requestsPerMinute: count(1, 10_000).default(30),
    /** Requests of one person that wait for approval at once. */
    draftsPerPerson: count(1, 10_000).default(10),
    /** Of everyone together: sent, or about to be. Break-glass has its own. */
    destructivePerHour: count(0, 10_000).default(5),
    breakGlassPerHour: count(0, 10_000).default(5),
  }).prefault({}),
  timing: timing.prefault({}),
}).transform(({ approvals, ...rest }) => {
  const rules = approvals.map(({ expires, required, ...rule }) => ({
    ...rule,
    /** Of all together. */
    required: required ?? (rule.votes ?? []).reduce((sum, vote) => sum + vote.required, 0),
    expiresMs: expires ?? rest.timing.approvalExpiresMs,
  }));
  return { ...rest, approvals: rules };
});

export { durationWords, parseDuration, type Timing, type Weekday } from "./policy-values.ts";

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
export function emptyPolicy(): Policy {
  return { ...policySchema.parse({}), operations: [] };
}

/**
 * Reads gatehouse.yml. Problems begin with their place: `gatehouse.yml line 3: access.oprate isn't known; did you mean
 * operate?`. `operations` are all commands, which live to the right of here.
 */
export function parsePolicy(
  text: string,
  path: string,
  operations: readonly Operation[],
): ReadPolicy | { problems: readonly string[] } {
  if (text.length > longestText)
    return { problems: [`${path}: is larger than ${longestText} characters`] };
  const { document, value, lineAt, problems: unsaid } = readYaml(text);
  const told = (problems: readonly Problem[]) => ({
    problems: problems
      .toSorted((a, b) => (a.offset ?? 0) - (b.offset ?? 0))
      // A key may hold a line break, which must not make a line of its own
      .map(({ offset, sentence }) => printableLine(`${path} line ${lineAt(offset)}: ${sentence}`)),
  });
  if (value === undefined) return told(unsaid);
  const read = policySchema.safeParse(value, { reportInput: true });
  // Of what is empty the schema has nothing to add
  const wrong = read.success
    ? nonsenseIn(read.data, operations).map((one) => problemAt(one.path, one.message, document))
    : read.error.issues
        .filter(({ input }) => input !== null)
        .flatMap((issue) => problemsOf(issue, document));
  if (!read.success || unsaid.length + wrong.length > 0) return told([...unsaid, ...wrong]);
  const lineOf: ReadPolicy["lineOf"] = (at) =>
    document.hasIn(at) ? lineAt(place(at, document, false)) : undefined;
  for (const part of [read.data.approvals, read.data.teams]) linesOf.set(part, lineOf);
  return { policy: { ...read.data, operations: [...operations] }, lineOf };
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
  const { access, approvals, protect, channels, limits } = policy;
  // Without teams the version stays what it was before there were any
  const entries = Object.entries(policy.teams).map(([name, { digests: _at, ...rights }]) => [
    name,
    rights,
  ]);
  const teams = entries.length > 0 ? { teams: Object.fromEntries(entries) as unknown } : {};
  const { endorsements: _place, refresh: _from, ...attestation } = policy.attestation;
  const deciding = { access, approvals, protect, channels, attestation, limits, ...teams };
  return createHash("sha256").update(canonical(deciding)).digest("hex").slice(0, 12);
}

function problemsOf(issue: z.core.$ZodIssue, document: Document): Problem[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const known = issue.message.split(" ");
      const meant = nearest(key, known);
      const rest = meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
      return {
        offset: place([...issue.path, key], document, true),
        sentence: `${pathText([...issue.path, key])} isn't known; ${rest}`,
      };
    });
  }
  return [problemAt(issue.path, complaint(issue), document)];
}

function problemAt(path: readonly PropertyKey[], message: string, document: Document): Problem {
  return { offset: place(path, document, false), sentence: `${pathText(path)} ${message}`.trim() };
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
