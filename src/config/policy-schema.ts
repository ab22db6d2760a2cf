import * as z from "zod";
import { matchesGlob } from "../text/glob.ts";
import { allowances, type AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import { exactTime } from "../verifier/der.ts";
import { products } from "../verifier/roots.ts";
import { tcbPartNames } from "../verifier/snp/report.ts";
import { tcbStatuses } from "../verifier/tdx/tcb.ts";
import { parseDuration } from "./durations.ts";

/** An object that refuses unknown keys; the message of that issue is the list of known ones. */
function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(" ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined),
  });
}

/** A text that becomes what `read` makes of it, with one sentence for whatever else stands there. */
export function readAs<T>(
  sentence: string | ((text: string) => string),
  read: (text: string) => T | undefined,
) {
  const isFixed = typeof sentence === "string";
  return z.string(isFixed ? sentence : undefined).transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    const message = isFixed ? sentence : sentence(text);
    context.issues.push({ code: "custom", message, input: text });
    return z.NEVER;
  });
}

export const matching = (pattern: RegExp, sentence: string) => z.string().regex(pattern, sentence);

export const webAddress = (sentence: string) => z.url({ protocol: /^https?$/, error: sentence });

/** Becomes milliseconds. */
export const durationText = readAs(
  "must be a length of time like 500ms, 15s, 2m, 1h, or 7d (24 days at most)",
  parseDuration,
);

const who = matching(
  /^(\*|[UWS][A-Z0-9]{2,20})$/,
  'must be a user ID (U…), a user group ID (S…), or "*", not a name; Slack shows IDs under "Copy member ID" and in the address of a group',
);

export const channel = matching(
  /^[CG][A-Z0-9]{2,20}$/,
  "must be a channel ID (C…), not a name; Slack shows it at the end of the channel's details",
);

export const glob = matching(
  /^[^\s,]{1,200}$/,
  "must be a name or a glob like prod-*, without spaces",
);

const operation = matching(
  /^[a-z*?]{1,30}(\.[a-z*?-]{1,30}){0,2}$/,
  "must be a command with a dot, like vm.restore, or a glob like vm.*",
);

export const timeOfDay = matching(
  /^([01]\d|2[0-3]):[0-5]\d$/,
  'must be a time of day like "09:00"',
);

/** One value, or MRTD,RTMR0,RTMR1,RTMR2 of a TDX VM. Becomes lower case without `0x` and spaces. */
export const measurement = matching(
  /^\s*(0x)?[0-9a-fA-F]{96}(\s*,\s*(0x)?[0-9a-fA-F]{96}){0,3}\s*$/,
  'must be 48 bytes, which are 96 hex digits, or four such values with commas (MRTD,RTMR0,RTMR1,RTMR2); put it in quotes ("…") so that YAML reads it as text',
)
  .refine(
    (text) => [1, 4].includes(text.split(",").length),
    "must be one value, or four with commas: MRTD,RTMR0,RTMR1,RTMR2",
  )
  .transform((text) => text.toLowerCase().replaceAll(/\s|0x/g, ""));

export const timezone = z
  .string()
  .refine(
    (name) => /^[A-Za-z]/.test(name) && isTimezone(name),
    "must be a time zone like Europe/Paris",
  );

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function count(least: number, most: number) {
  const sentence = `must be a whole number from ${least} to ${most}`;
  return z.int(sentence).min(least, sentence).max(most, sentence);
}

export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof weekdays)[number];

/** `daily`, `mon-fri`, `mon,wed`, `sat-mon,wed`. */
export const days = readAs("must be days like daily, mon-fri, or mon,wed,fri", (text) => {
  const parts = text.toLowerCase().replaceAll(/\s/g, "").split(",");
  const wanted = parts.map((part) => daysOf(part));
  if (wanted.includes(undefined)) return undefined;
  return weekdays.filter((day) => wanted.some((some) => some?.includes(day)));
});

function daysOf(part: string): readonly Weekday[] | undefined {
  if (part === "daily") return weekdays;
  const [from, to = from, ...rest] = part
    .split("-")
    .map((name) => weekdays.findIndex((day) => day === name));
  if (from === undefined || to === undefined || from < 0 || to < 0 || rest.length > 0)
    return undefined;
  const length = ((to - from + 7) % 7) + 1;
  return Array.from({ length }, (_, step) => weekdays[(from + step) % 7] ?? "mon");
}

const lasting = (text: string) => durationText.prefault(text);

const some = <Item extends z.ZodType>(item: Item, what: string) =>
  z.array(item).min(1, `must name at least one ${what}`);

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

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, { error: `must be one of ${names.join(", ")}` });

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

/** When a channel gets its digest. */
const digest = {
  /** Local time, `HH:MM`. */
  at: timeOfDay,
  timezone: timezone.default("UTC"),
  days: days.prefault("daily"),
  /** Globs over VM and project names: it speaks of these alone. */
  targets: some(glob, "VM or project").optional(),
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
  projects: some(teamProject, "project"),
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

/** What sends alerts, as it words and signs them. */
export const alertFormats = ["alertmanager", "grafana", "pagerduty", "plain"] as const;

const headerName = matching(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, "must be the name of an HTTP header");

/** Sends alerts to the API, at `/alerts/<its name>`; its secret is DOOR_SECRET_<NAME>. */
const source = section({
  format: oneOf(alertFormats),
  /** Labels that name a VM: the first that an alert has counts. */
  vm: some(matching(/^[A-Za-z_][\w.-]{0,100}$/, "must be the name of a label"), "label").default([
    "vm",
    "instance",
  ]),
  /** Undefined: that of the VM's team, else `alerts`. */
  channel: channel.optional(),
  /** Commands on a VM, with a dot, offered beside show, metrics, and restart. */
  offer: z.array(operation).default([]),
  /** Grafana alone: whether only what it has signed is taken. PagerDuty always signs. */
  signed: z.boolean("must be true or false").default(false),
  /** Grafana alone: the header with the time that it signs, too. */
  timestampHeader: headerName.optional(),
}).refine(({ format, signed, timestampHeader }) => {
  return format === "grafana" || (!signed && timestampHeader === undefined);
}, "has `signed` or `timestampHeader`, which only Grafana's format knows");

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

/** gatehouse.yml: every section, its rules, and its defaults. */
export const policySchema = section({
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
  teams: z.record(teamName, team).default({}),
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
  digests: z.array(section({ channel, ...digest })).default([]),
  sources: z.record(teamName, source).default({}),
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
}).transform(({ approvals, ...rest }) => {
  const rules = approvals.map(({ expires, required, ...rule }) => ({
    ...rule,
    /** Of all together. */
    required: required ?? (rule.votes ?? []).reduce((sum, vote) => sum + vote.required, 0),
    expiresMs: expires ?? rest.timing.approvalExpiresMs,
  }));
  return { ...rest, approvals: rules };
});
