import * as z from "zod";
import { fold } from "../text/fold.ts";
import { coversGlob } from "../text/glob.ts";
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
  mentionable,
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
 * Durations that no installation sets, in milliseconds. Each follows from how the compute service
 * or Gatehouse itself works; a wrong value would break a promise or make people wait. Tests and the
 * sandbox pass a pace of their own.
 */
export const usualPace = {
  /**
   * How long after a send a sign that a restart began (REBOOTING, or another status than before) must be seen.
   * A reboot shows within seconds.
   */
  restartMarkMs: 120_000,
  /**
   * The delay before the first poll of a target, and the longest delay between two polls. A person
   * sees the end within seconds of it.
   */
  pollFirstMs: 1_000,
  pollMostMs: 10_000,
  /**
   * Equal reads this far apart count as stable. It is short compared with a reboot, so that no
   * reboot goes unseen between two reads.
   */
  stableGapMs: 2_000,
  /**
   * The gap between two equal reads after a transition such as REBOOTING was read. The transition
   * is the proof, and a flapping status doesn't stay the same for this long.
   */
  transitionGapMs: 500,
  /** The longest time from claim to send. After it, what the gate found may no longer be true. */
  claimWindowMs: 2_000,
  /** The heartbeat interval. A dead worker must be noticed while its claim is young. */
  heartbeatMs: 3_000,
  /**
   * How often open requests are checked for deadlines and dead workers. The relay runs twice as
   * often.
   */
  sweepMs: 10_000,
  /** The time between two edits that only show progress. Slack allows about 50 edits a minute. */
  editMs: 4_000,
  /**
   * How long until a message is tried again when Slack's answer was lost, because the call may take effect until then, or when Slack
   * refuses the app itself.
   */
  messageRetryMs: 3_000,
  /**
   * How long users and groups are cached. Rights are checked right before a send, with data at most
   * this old.
   */
  peopleCacheMs: 60_000,
  /** How often all names are read from the compute service. */
  inventoryRefreshMs: 60_000,
  /**
   * The time between the starts of two reads of all names that people's questions cause, however
   * many ask.
   */
  inventoryAgainMs: 1_000,
  /**
   * How long after a change an alert may take to end, so that the change counts as what ended it.
   * Most alerts need some minutes of good values.
   */
  remedyMs: 5 * 60_000,
};
export type Pace = Readonly<typeof usualPace>;

const lengths = section({
  /** The limit of one call to the compute service. */
  httpTimeout: lasting("15s"),
  /**
   * The quiet period: how long after an unclear send reads prove nothing. It is 2 s + 2 ×
   * httpTimeout + the longest delay seen until an effect is visible.
   */
  quiesce: lasting("60s"),
  /** How long after a send its target may take to settle. After that, the outcome is unknown. */
  settleDeadline: lasting("15m"),
  /** How long an authorized request may stay unsent before it expires. */
  staleAfter: lasting("10m"),
  /** How long a request waits for approval, unless its rule sets another time. */
  approvalExpires: lasting("15m"),
  /** Shorter outages of Slack, Redis, or the compute service get no recap. */
  outage: lasting("30s"),
  /** How often pinned VMs are attested. */
  driftWatch: lasting("15m"),
  /** The ages at which an unknown outcome gets a reminder. */
  reminders: z.array(durationText).prefault(["15m", "1h", "4h"]),
});

type Lengths = z.output<typeof lengths>;
/** The lengths in milliseconds, named accordingly: `httpTimeoutMs` for `httpTimeout`. */
type Timing = { readonly [Name in keyof Lengths as `${Name}Ms`]: Lengths[Name] };

const timing = lengths.transform((read): Timing => {
  const named = Object.entries(read).map(([name, length]) => [`${name}Ms`, length]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.fromEntries forgets the names
  return Object.fromEntries(named) as Timing;
});

/** A rule about which evidence is accepted from the VMs that it targets. */
export interface AppraisalRule {
  /** Globs over VM names. Undefined: all VMs. */
  targets: readonly string[] | undefined;
  policy: AppraisalPolicy;
}

/** Converts a day to milliseconds: the last second of that day in UTC. */
export const lastDay = readAs('must be a day of the calendar like "2026-12-31"', (text) =>
  exactTime(`${text}T23:59:59Z`),
);

const part = count(0, 255).optional();

const minimum = section({
  product: oneOf(products),
  /** CPUID models. Undefined: every model of the product. */
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
  /** A level is accepted with these advisories at most; any other advisory refuses it. */
  advisories: z
    .array(z.string().regex(/^[\w-]{1,40}$/, "must be an advisory like INTEL-SA-00837"))
    .default([]),
  until: lastDay,
});

/** A rule of `attestation.appraisal`. `attestation check` parses its options with it, too. */
export const appraisalRule = section({
  targets: some(glob, "VM").optional(),
  allow: z.array(oneOf(allowances)).default([]),
  accept: z.array(accepted).default([]),
  minimumTcb: z.array(minimum).default([]),
  vmpl: count(0, 3).default(0),
  requireBinding: z.boolean("must be true or false").default(false),
  /** The greatest age of the vendors' lists. Their own end dates apply as well. */
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
 * The index of an earlier rule that covers all VMs of the rule at `at`, so that this rule never
 * counts (the first match wins). -1: none does.
 */
const shadowOf = (rules: readonly AppraisalRule[], at: number) =>
  rules
    .slice(0, at)
    .findIndex(
      ({ targets: earlierGlobs }) =>
        earlierGlobs === undefined ||
        rules[at]?.targets?.every((laterGlob) =>
          earlierGlobs.some((other) => coversGlob(fold(other), fold(laterGlob))),
        ) === true,
    );

/** An address without the slash at its end. */
const address = (usual: string) =>
  webAddress("must be an address like https://kdsintf.amd.com")
    .transform((text) => text.replace(/\/+$/, ""))
    .prefault(usual);

/** The addresses that endorsements are fetched from. */
const refresh = section({
  /** Intel's PCS, or a PCCS. */
  intel: address("https://api.trustedservices.intel.com"),
  /**
   * The revocation list of Intel's root CA. A PCCS has it under `/sgx/certification/v4/rootcacrl`.
   */
  intelRoot: address("https://certificates.trustedservices.intel.com/IntelSGXRootCA.der"),
  amd: address("https://kdsintf.amd.com"),
});

/**
 * `attestation` in gatehouse.yml: reference values for VMs, and what is accepted of the machines
 * under them.
 */
const attestationSection = section({
  pins: z
    .array(
      section({
        targets: some(glob, "VM"),
        measurements: some(measurement, "measurement"),
      }),
    )
    .default([]),
  /** The first match wins. Without a match, only what is current is accepted. */
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
  /** The folder of what Intel and AMD have signed. docs/attestation.md names its files. */
  endorsements: z.string().min(1, "must be a folder").optional(),
  /** Where Gatehouse fetches what the folder lacks. Undefined: an operator fills the folder. */
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
 * The rights over the projects of a team. `access` applies to projects without a team; its
 * administrators apply to every team. Anyone who may operate, approve, or break glass for a team
 * may view it, too.
 */
const ofTeam = {
  /** Project IDs, names, or globs over names. A VM belongs to its project's team. */
  projects: some(teamProject, "project"),
  view: people(),
  operate: people(),
  approve: people(),
  breakGlass: people(),
  /**
   * The channel for the team's approvals, alerts, unknown outcomes, and recaps that arise in other
   * channels.
   */
  channel: channel.optional(),
};

const tokenHash = matching(
  /^sha256:[0-9a-f]{64}$/,
  "must be the hash of a token, like sha256:<64 hex digits>; `node gatehouse.mjs token` makes both",
);

/**
 * A program that views and proposes through the API. It never operates, approves, or counts as a
 * person.
 */
const service = section({
  /** One hash, or two while one token replaces the other. */
  tokens: some(tokenHash, "hash").max(2, "must be two at most"),
  /** Project IDs, names, or globs over names; `*` for all. To the service, nothing else exists. */
  view: z.array(teamProject).default([]),
  /** Which commands it may propose, on which targets. */
  propose: z
    .array(
      section({
        operations: some(operation, "command"),
        targets: some(glob, "VM or project").optional(),
      }),
    )
    .default([]),
  /** The channel where its proposals are posted. */
  channel: channel.optional(),
  /** The people and groups whom the card of a proposal mentions once. It gives nobody a right. */
  notify: z.array(mentionable).default([]),
  /** How long a proposal that nobody runs stays open. */
  expires: lasting("1h"),
  limits: section({
    requestsPerMinute: count(1, 10_000).default(60),
    /** Proposals that nobody has run or dismissed and that haven't expired. */
    openProposals: count(1, 1_000).default(20),
  }).prefault({}),
}).refine(({ propose, channel: where }) => propose.length === 0 || where !== undefined, {
  path: ["propose"],
  message: "needs `channel`: where its proposals are posted",
});

/** The sections of gatehouse.yml that belong to no feature, with their rules and defaults. */
const ownSections = {
  /**
   * Among several files, the one with the highest version is in force. Undefined: the file that was
   * loaded last, unless another file has a version.
   */
  version: count(1, Number.MAX_SAFE_INTEGER).optional(),
  access: section({
    view: people(["*"]),
    operate: people(),
    approve: people(),
    administer: people(),
    breakGlass: people(),
  }).prefault({}),
  /** The first match wins. Without a match, destructive commands need one approval. */
  approvals: z
    .array(
      section({
        /** Globs over command names written with a dot: `vm.restore`, `vm.*`. */
        operations: some(operation, "command"),
        /** Globs over VM or project names. Undefined: all. */
        targets: some(glob, "VM or project, or be omitted for all").optional(),
        /**
         * How many approvals are needed from people who may approve on the target. 0: the request
         * runs at once.
         */
        required: count(0, 20).optional(),
        /** Replaces `required`: each entry must be met, and one person counts once. */
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
  /**
   * Globs over VM and project names. A command that interrupts such a VM is confirmed once, whatever
   * the status of the VM.
   */
  confirm: z.array(glob).default([]),
  /**
   * Globs over VM and project names. These targets are never restored, deleted, stopped, resized,
   * or renamed from Slack.
   */
  protect: z.array(glob).default([]),
  /** The channels where changing commands are accepted. Undefined: everywhere. */
  channels: some(channel, "channel, or be omitted").optional(),
  /** Channels shared with another company in which Gatehouse posts nevertheless. */
  sharedChannels: z.array(channel).default([]),
  audit: section({ channel }).optional(),
  alerts: section({ channel }).optional(),
  services: z.record(teamName, service).default({}),
  attestation: attestationSection,
  limits: section({
    /** Per person: changes, break-glass requests, and consoles. */
    requestsPerMinute: count(1, 10_000).default(30),
    /** Requests of one person that wait for approval at the same time. */
    draftsPerPerson: count(1, 10_000).default(10),
    /**
     * For everyone together: requests that were sent or are about to be. Break-glass requests are
     * counted separately.
     */
    destructivePerHour: count(0, 10_000).default(5),
    breakGlassPerHour: count(0, 10_000).default(5),
  }).prefault({}),
  timing: timing.prefault({}),
};

const ownSchema = section(ownSections).transform(filled);

/** The file without the sections of features, which only `sectionOf` reads. */
export type PolicyRules = z.output<typeof ownSchema>;

/** Schemas by their sections of features: making one takes longer than reading a file with it. */
const schemas = new WeakMap<readonly PolicySection[], z.ZodType<PolicyRules>>();

/** The schema of gatehouse.yml: its own sections and those of features. */
export const policySchema = (sections: readonly PolicySection[]): z.ZodType<PolicyRules> =>
  schemas.getOrInsertComputed(sections, createPolicySchema);

function createPolicySchema(sections: readonly PolicySection[]): z.ZodType<PolicyRules> {
  const added = Object.fromEntries(sections.map(({ name, schema }) => [name, schema]));
  const addedToTeams = Object.fromEntries(
    sections.flatMap(({ name, inTeams }) => (inTeams ? [[name, inTeams]] : [])),
  );
  const team = section<typeof ofTeam>({ ...ofTeam, ...addedToTeams });
  const teams = z.record(teamName, team).default({});
  return section<typeof ownSections>({ ...ownSections, teams, ...added }).transform(filled);
}

/** Fills in rules whose values depend on other sections. */
function filled({ approvals, ...rest }: z.output<z.ZodObject<typeof ownSections>>) {
  const rules = approvals.map(({ expires, required, ...rule }) => ({
    ...rule,
    /** Total number of approvals needed. */
    required: required ?? (rule.votes ?? []).reduce((sum, vote) => sum + vote.required, 0),
    expiresMs: expires ?? rest.timing.approvalExpiresMs,
  }));
  return { ...rest, approvals: rules };
}
