import * as z from "zod"

/**
 * gatehouse.yml as the rest of the program sees it: every default filled in, every duration in milliseconds.
 * Who is listed: Slack user ids (`U…`, `W…`), user group ids (`S…`), or `*` for every full member of the workspace.
 */
export interface Policy {
  readonly access: Access
  /** First match wins; without a match a destructive command needs one approval. */
  readonly approvals: readonly ApprovalRule[]
  /** Globs over VM and project names: never restored, deleted, stopped or resized from Slack. */
  readonly protect: readonly string[]
  /** Where changing commands are accepted; undefined: everywhere. */
  readonly channels?: readonly string[] | undefined
  readonly audit?: { readonly channel: string } | undefined
  readonly alerts?: { readonly channel: string } | undefined
  readonly digests: readonly DigestRule[]
  readonly attestation: {
    readonly pins: readonly Pin[]
    /** A restore from an older snapshot needs one approval more. */
    readonly maxSnapshotAgeMs?: number | undefined
  }
  readonly limits: { readonly requestsPerMinute: number; readonly destructivePerHour: number }
  readonly timing: Timing
}

export interface Access {
  readonly view: readonly string[]
  readonly operate: readonly string[]
  readonly approve: readonly string[]
  readonly administer: readonly string[]
  readonly breakGlass: readonly string[]
}

export interface ApprovalRule {
  /** Globs over command names written with a dot: `vm.restore`, `vm.*`. */
  readonly operations: readonly string[]
  /** Globs over VM or project names; undefined: all. */
  readonly targets?: readonly string[] | undefined
  readonly required: number
  readonly expiresMs: number
}

export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun"

export interface DigestRule {
  readonly channel: string
  /** Local time, `HH:MM`. */
  readonly at: string
  /** IANA name, e.g. `Europe/Paris`. */
  readonly timezone: string
  readonly days: readonly Weekday[]
}

export interface Pin {
  readonly targets: readonly string[]
  /** Lower-case hex, without `0x`. */
  readonly measurements: readonly string[]
}

const weekdays: readonly Weekday[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
// setTimeout fires at once beyond 2^31-1 ms
const longestMs = 24 * unitMs.d

/** `500ms`, `15s`, `2m`, `1h`, `7d` in milliseconds, or undefined. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)\s?(ms|s|m|h|d)$/.exec(text)
  const milliseconds = match ? Math.round(Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]) : 0
  return milliseconds > 0 && milliseconds <= longestMs ? milliseconds : undefined
}

/** An object that refuses unknown keys; the message of that refusal is the list of the known ones. */
function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(" ")
  return z.strictObject(shape, { error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined) })
}

const matching = (pattern: RegExp, sentence: string) => z.string().regex(pattern, sentence)
const durationSentence = "should be a length of time like 500ms, 15s, 2m, 1h or 7d (24 days at most)"

const duration = z.string(durationSentence).transform((text, context) => {
  const milliseconds = parseDuration(text)
  if (milliseconds === undefined) context.issues.push({ code: "custom", message: durationSentence, input: text })
  return milliseconds ?? 0
})

const lasting = (text: string) => duration.prefault(text)

const who = matching(
  /^(\*|[UWS][A-Z0-9]{2,20})$/,
  'should be a user id (U…), a user group id (S…) or "*", not a name; Slack shows ids under "Copy member ID" and in the address of a group',
)
const channel = matching(
  /^[CG][A-Z0-9]{2,20}$/,
  "should be a channel id (C…), not a name; Slack shows it at the end of the channel's details",
)
const glob = matching(/^[^\s,]{1,200}$/, "should be a name or a glob like prod-*, without spaces")
const operation = matching(/^[a-z*?]{1,30}(\.[a-z*?-]{1,30})?$/, "should be a command with a dot, like vm.restore, or a glob like vm.*")
const people = (fallback: string[]) => z.array(who).default(fallback)

const timezone = z.string().refine((name) => /^[A-Za-z]/.test(name) && isTimezone(name), "isn't a time zone: write one like Europe/Paris")

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}

const daysSentence = "should be days like daily, mon-fri or mon,wed,fri"

/** `daily`, `mon-fri`, `mon,wed`, `sat-mon,wed`. */
const days = z.string(daysSentence).transform((text, context) => {
  const wanted = text.toLowerCase().replaceAll(/\s/g, "").split(",").map((part) => daysOf(part))
  if (wanted.includes(undefined)) context.issues.push({ code: "custom", message: daysSentence, input: text })
  return weekdays.filter((day) => wanted.some((part) => part?.includes(day)))
})

function daysOf(part: string): readonly Weekday[] | undefined {
  if (part === "daily") return weekdays
  const [from, to = from, ...rest] = part.split("-").map((name) => weekdays.findIndex((day) => day === name))
  if (from === undefined || to === undefined || from < 0 || to < 0 || rest.length > 0) return undefined
  const length = ((to - from + 7) % 7) + 1
  return Array.from({ length }, (_, step) => weekdays[(from + step) % 7] ?? "mon")
}

const measurement = matching(
  /^(0x)?[0-9a-fA-F]{2,256}$/,
  'should be hex digits; put it in quotes ("…") so that YAML reads it as text',
).transform((text) => text.toLowerCase().replace(/^0x/, ""))

const timing = section({
  httpTimeout: lasting("15s"),
  quiesce: lasting("60s"),
  settleDeadline: lasting("15m"),
  staleAfter: lasting("10m"),
  approvalExpires: lasting("15m"),
  restartMark: lasting("2m"),
  pollFirst: lasting("1s"),
  pollMost: lasting("10s"),
  stableGap: lasting("2s"),
  claimWindow: lasting("2s"),
  heartbeat: lasting("3s"),
  sweep: lasting("15s"),
  canary: lasting("60s"),
  peopleCache: lasting("60s"),
  inventoryRefresh: lasting("60s"),
  reminders: z.array(duration).prefault(["15m", "1h", "4h"]),
}).transform((read) => {
  const { reminders, ...single } = read
  const pairs = Object.entries(single).map(([name, milliseconds]) => [`${name}Ms`, milliseconds])
  return { ...(Object.fromEntries(pairs) as { readonly [Name in keyof typeof single as `${Name}Ms`]: number }), remindersMs: reminders as readonly number[] }
})

/** `timing.httpTimeoutMs` and so on: the keys of `timing` in gatehouse.yml with `Ms` at the end. */
export type Timing = z.output<typeof timing>

const count = (least: number, most: number) => {
  const sentence = `should be a whole number from ${least} to ${most}`
  return z.int(sentence).min(least, sentence).max(most, sentence)
}

export const policySchema = section({
  access: section({
    view: people(["*"]),
    operate: people([]),
    approve: people([]),
    administer: people([]),
    breakGlass: people([]),
  }).prefault({}),
  approvals: z
    .array(
      section({
        operations: z.array(operation).min(1, "should name at least one command"),
        targets: z.array(glob).optional(),
        required: count(0, 20),
        expires: duration.optional(),
      }),
    )
    .default([]),
  protect: z.array(glob).default([]),
  channels: z.array(channel).min(1, "should name at least one channel, or be left away").optional(),
  audit: section({ channel }).optional(),
  alerts: section({ channel }).optional(),
  digests: z
    .array(
      section({
        channel,
        at: matching(/^([01]\d|2[0-3]):[0-5]\d$/, 'should be a time of day like "09:00"'),
        timezone: timezone.default("UTC"),
        days: days.prefault("daily"),
      }),
    )
    .default([]),
  attestation: section({
    pins: z
      .array(section({
          targets: z.array(glob).min(1, "should name at least one VM"),
          measurements: z.array(measurement).min(1, "should hold at least one measurement"),
        }),)
      .default([]),
    maxSnapshotAge: duration.optional(),
  }).prefault({}),
  limits: section({
    requestsPerMinute: count(1, 10_000).default(30),
    destructivePerHour: count(0, 10_000).default(5),
  }).prefault({}),
  timing: timing.prefault({}),
}).transform(({ approvals, attestation, ...rest }): Policy => {
  const { maxSnapshotAge: maxSnapshotAgeMs, pins } = attestation
  const rules = approvals.map(({ expires, ...rule }) => ({ ...rule, expiresMs: expires ?? rest.timing.approvalExpiresMs }))
  return { ...rest, approvals: rules, attestation: { pins, maxSnapshotAgeMs } }
})
