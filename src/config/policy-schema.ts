import * as z from "zod";
import { matchesGlob } from "../text/glob.ts";
import { allowances, type AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import type { PolicySection } from "./policy-section.ts";
import { exactTime } from "../verifier/der.ts";
import { products } from "../verifier/roots.ts";
import { tcbPartNames } from "../verifier/snp/report.ts";
import { tcbStatuses } from "../verifier/tdx/tcb.ts";
import {
  channel,
  count,
  durationText,
  glob,
  lasting,
  matching,
  measurement,
  oneOf,
  operation,
  readAs,
  section,
  some,
  teamName,
  teamProject,
  webAddress,
  who,
} from "./policy-values.ts";

/**
 * What no installation turns, in milliseconds: each is bound to how the service or Gatehouse itself works, and a wrong value would
 * make a promise untrue or a person wait. Tests and the sandbox run at a pace of their own.
 */
export const usualPace = {
  /** From a send until a sign that it began (REBOOTING, a newer timestamp) must be seen: a reboot shows within seconds. */
  restartMarkMs: 120_000,
  /** The first poll of a target, and the longest time between two: a person sees the end within seconds of it. */
  pollFirstMs: 1_000,
  pollMostMs: 10_000,
  /** Equal reads this far apart are stable: short compared with a reboot, which must not go unseen between them. */
  stableGapMs: 2_000,
  /** The same after a transition was read, such as REBOOTING: that is the proof, and a status that flaps doesn't stand for so long. */
  transitionGapMs: 500,
  /** Longest time from claim to send: past it, what the gate found may no longer be so. */
  claimWindowMs: 2_000,
  /** Heartbeat interval: a worker that dies must be missed while its claim is young. */
  heartbeatMs: 3_000,
  /** How often open requests are looked through for deadlines and dead workers; the relay looks twice as often. */
  sweepMs: 10_000,
  /** Between two edits that only show progress: Slack takes some 50 a minute. */
  editMs: 4_000,
  /** How long people and groups are cached: rights are checked right before a send, as they were at most a minute ago. */
  peopleCacheMs: 60_000,
  /** How often all names are read. */
  inventoryRefreshMs: 60_000,
};
export type Pace = Readonly<typeof usualPace>;

const lengths = section({
  /** One call to the compute service. */
  httpTimeout: lasting("15s"),
  /** From an unclear send until reads count: 2 s + 2 × httpTimeout + the longest delay seen until an effect is visible. */
  quiesce: lasting("60s"),
  /** From a send until its target must have settled; after that the outcome is unknown. */
  settleDeadline: lasting("15m"),
  /** From authorized until an unsent request expires. */
  staleAfter: lasting("10m"),
  /** How long a request waits for approval, unless its rule says. */
  approvalExpires: lasting("15m"),
  /** Shorter outages of Slack, Redis, or the compute service get no recap. */
  outage: lasting("30s"),
  /** How often pinned VMs are attested. */
  driftWatch: lasting("15m"),
  /** Ages at which an unknown outcome gets a reminder. */
  reminders: z.array(durationText).prefault(["15m", "1h", "4h"]),
});

type Lengths = z.output<typeof lengths>;
/** In milliseconds, and named so: `httpTimeoutMs` for `httpTimeout`. */
type Timing = { readonly [Name in keyof Lengths as `${Name}Ms`]: Lengths[Name] };

const timing = lengths.transform((read): Timing => {
  const named = Object.entries(read).map(([name, length]) => [`${name}Ms`, length]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.fromEntries forgets the names
  return Object.fromEntries(named) as Timing;
});

/** What is accepted of these VMs. */
export interface AppraisalRule {
  /** Globs over VM names; undefined: all. */
  targets: readonly string[] | undefined;
  policy: AppraisalPolicy;
}

/** Becomes milliseconds: the last second of that day in UTC. */
export const lastDay = readAs('must be a day of the calendar like "2026-12-31"', (text) =>
  exactTime(`${text}T23:59:59Z`),
);

const part = count(0, 255).optional();

const minimum = section({
  product: oneOf(products),
  /** CPUID models; undefined: every one of the product. */
  models: some(count(0, 255), "model").optional(),
  fmc: part,
  bootloader: part,
  tee: part,
  snp: part,
  microcode: part,
})
  .refine((parts) => tcbPartNames.some((name) => parts[name] !== undefined), {
    message: `must name at least one part: ${tcbPartNames.join(", ")}`,
  })
  .refine(({ product, fmc }) => fmc === undefined || product === "Turin", {
    path: ["fmc"],
    message: "is a part of Turin's firmware alone: no other processor could meet it",
  })
  .transform(({ product, models, ...parts }) => ({
    product,
    ...(models ? { models } : {}),
    tcb: Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)),
  }));

const accepted = section({
  status: oneOf(tcbStatuses),
  /** Accepted with these at most: a level with another one is refused. */
  advisories: z
    .array(z.string().regex(/^[\w-]{1,40}$/, "must be an advisory like INTEL-SA-00837"))
    .default([]),
  until: lastDay,
});

/** A rule of `attestation.appraisal`; `attestation check` reads its options by it, too. */
export const appraisalRule = section({
  targets: some(glob, "VM").optional(),
  allow: z.array(oneOf(allowances)).default([]),
  accept: z.array(accepted).default([]),
  minimumTcb: z.array(minimum).default([]),
  vmpl: count(0, 3).default(0),
  requireBinding: z.boolean("must be true or false").default(false),
  /** Of the vendors' lists, beside their own end. */
  maxAge: durationText.optional(),
}).transform(
  ({ targets, allow, accept, minimumTcb, vmpl, requireBinding, maxAge }): AppraisalRule => ({
    targets,
    policy: {
      allows: allow,
      statuses: accept,
      minimumTcb,
      vmpl,
      needsBinding: requireBinding,
      ...(maxAge === undefined ? {} : { maxEndorsementAgeMs: maxAge }),
    },
  }),
);

/**
 * Whether whatever one glob names is named by the other, too. A `*` stands for any text, so that a glob in which it is read as
 * a letter covers no more than it does; a `?` there could stand for a `*`, and is left out.
 */
const covers = (wider: string, other: string) =>
  matchesGlob(wider, other) && !(wider.includes("?") && other.includes("*"));

/** The first match wins: of the same VMs, only the rule that stands first ever counts. -1: none shadows it. */
const shadowOf = (rules: readonly AppraisalRule[], at: number) =>
  rules
    .slice(0, at)
    .findIndex(
      ({ targets: theirs }) =>
        theirs === undefined ||
        rules[at]?.targets?.every((one) => theirs.some((other) => covers(other, one))) === true,
    );

/** Without the slash at its end. */
const address = (usual: string) =>
  webAddress("must be an address like https://kdsintf.amd.com")
    .transform((text) => text.replace(/\/+$/, ""))
    .prefault(usual);

/** Where endorsements are fetched from. */
const refresh = section({
  /** Intel's PCS, or a PCCS. */
  intel: address("https://api.trustedservices.intel.com"),
  /** The list of Intel's root; a PCCS has it under `/sgx/certification/v4/rootcacrl`. */
  intelRoot: address("https://certificates.trustedservices.intel.com/IntelSGXRootCA.der"),
  amd: address("https://kdsintf.amd.com"),
});

/** `attestation` in gatehouse.yml: what is expected of VMs, and what is accepted of the machines under them. */
const attestationSection = section({
  pins: z
    .array(
      section({
        targets: some(glob, "VM"),
        measurements: some(measurement, "measurement"),
      }),
    )
    .default([]),
  /** First match wins; without a match nothing is accepted that isn't current. */
  appraisal: z
    .array(appraisalRule)
    .default([])
    .superRefine((rules, context) => {
      for (const at of rules.keys()) {
        const before = shadowOf(rules, at);
        if (before >= 0)
          context.addIssue({
            code: "custom",
            path: [at],
            message: `can never apply: rule ${before + 1} comes first and matches the same VMs; put the narrower or stricter one first, or merge them`,
          });
      }
    }),
  /** A restore from an older snapshot needs one more approval. */
  maxSnapshotAge: durationText.optional(),
  /** The folder of what Intel and AMD have signed; docs/attestation.md names its files. */
  endorsements: z.string().min(1, "must be a folder").optional(),
  /** Fetches what that folder lacks from the vendors; undefined: an operator fills it. */
  refresh: refresh.optional(),
})
  .refine(({ refresh: from, endorsements }) => !from || endorsements !== undefined, {
    path: ["refresh"],
    message: "needs attestation.endorsements: the folder that is filled",
  })
  .prefault({})
  .transform(({ maxSnapshotAge: maxSnapshotAgeMs, ...rest }) => ({ ...rest, maxSnapshotAgeMs }));

const people = (fallback: string[] = []) => z.array(who).default(fallback);

/**
 * Who may do what with the projects of a team. `access` is for what no team has; its administrators are for everybody. Whoever
 * may operate, approve, or break glass for a team sees it too.
 */
const ofTeam = {
  /** Project IDs, names, or globs over names. A VM belongs to its project's team. */
  projects: some(teamProject, "project"),
  view: people(),
  operate: people(),
  approve: people(),
  breakGlass: people(),
  /** Where the team's approvals, alerts, unknown outcomes, and recaps go when they arise elsewhere. */
  channel: channel.optional(),
};

const tokenHash = matching(
  /^sha256:[0-9a-f]{64}$/,
  "must be the hash of a token, like sha256:<64 hex digits>; `node gatehouse.mjs token` makes both",
);

/** A program that views and proposes through the API. It never operates, approves, or counts as a person. */
const service = section({
  /** Two while one replaces the other. */
  tokens: some(tokenHash, "hash").max(2, "must be two at most"),
  /** Project IDs, names, or globs over names; `*` for all. Anything else doesn't exist for it. */
  view: z.array(teamProject).default([]),
  /** Which commands on which targets it may propose. */
  propose: z
    .array(
      section({
        operations: some(operation, "command"),
        targets: some(glob, "VM or project").optional(),
      }),
    )
    .default([]),
  /** Where its proposals are posted. */
  channel: channel.optional(),
  /** Until a proposal that nobody runs expires. */
  expires: lasting("1h"),
  limits: section({
    requestsPerMinute: count(1, 10_000).default(60),
    /** Proposals that nobody has run, dismissed, or let expire. */
    openProposals: count(1, 1_000).default(20),
  }).prefault({}),
}).refine(({ propose, channel: where }) => propose.length === 0 || where !== undefined, {
  path: ["propose"],
  message: "needs `channel`: where its proposals are posted",
});

/** The sections of gatehouse.yml that belong to no feature, with their rules and defaults. */
const ownSections = {
  /** Of several files the highest is in force; undefined: the one that was loaded last, unless another has a version. */
  version: count(1, Number.MAX_SAFE_INTEGER).optional(),
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
        operations: some(operation, "command"),
        /** Globs over VM or project names; undefined: all. */
        targets: some(glob, "VM or project, or be omitted for all").optional(),
        /** From those who may approve on the target; 0: it runs at once. */
        required: count(0, 20).optional(),
        /** Instead of `required`: each must be met, and one person counts once. */
        votes: some(
          section({
            /** User IDs, user group IDs, or `*`. */
            from: some(who, "person or group"),
            required: count(1, 20).default(1),
          }),
          "entry with `from`",
        ).optional(),
        expires: durationText.optional(),
      }).refine(({ required, votes }) => (required === undefined) !== (votes === undefined), {
        error: "must contain either `required` or `votes`",
      }),
    )
    .default([]),
  teams: z.record(teamName, section(ofTeam)).default({}),
  /** Globs over VM and project names: what interrupts one of them while it runs is confirmed once. */
  confirm: z.array(glob).default([]),
  /** Globs over VM and project names: never restored, deleted, stopped, resized, or renamed from Slack. */
  protect: z.array(glob).default([]),
  /** Where changing commands are accepted; undefined: everywhere. */
  channels: some(channel, "channel, or be omitted").optional(),
  /** Shared with another company, and posted in all the same. */
  sharedChannels: z.array(channel).default([]),
  audit: section({ channel }).optional(),
  alerts: section({ channel }).optional(),
  services: z.record(teamName, service).default({}),
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
};

const ownSchema = section(ownSections).transform(filled);

/** The file without the sections of features, which only `sectionOf` reads. */
export type PolicyRules = z.output<typeof ownSchema>;

/** gatehouse.yml: its own sections and those of features. */
export function policySchema(sections: readonly PolicySection[]): z.ZodType<PolicyRules> {
  const added = Object.fromEntries(sections.map(({ name, schema }) => [name, schema]));
  const addedToTeams = Object.fromEntries(
    sections.flatMap(({ name, inTeams }) => (inTeams ? [[name, inTeams]] : [])),
  );
  const team = section<typeof ofTeam>({ ...ofTeam, ...addedToTeams });
  const teams = z.record(teamName, team).default({});
  return section<typeof ownSections>({ ...ownSections, teams, ...added }).transform(filled);
}

/** Rules whose values depend on other sections. */
function filled({ approvals, ...rest }: z.output<z.ZodObject<typeof ownSections>>) {
  const rules = approvals.map(({ expires, required, ...rule }) => ({
    ...rule,
    /** Total number of approvals needed. */
    required: required ?? (rule.votes ?? []).reduce((sum, vote) => sum + vote.required, 0),
    expiresMs: expires ?? rest.timing.approvalExpiresMs,
  }));
  return { ...rest, approvals: rules };
}
