import * as z from "zod";
import { timing, type Timing } from "./policy-timing.ts";
import {
  channel,
  count,
  days,
  duration,
  glob,
  measurement,
  operation,
  section,
  timeOfDay,
  timezone,
  who,
  type Weekday,
} from "./policy-values.ts";

/**
 * gatehouse.yml as the rest of the program sees it: every default filled in, every duration in milliseconds.
 * Who is listed: Slack user ids (`U…`, `W…`), user group ids (`S…`), or `*` for every full member of the workspace.
 */
export interface Policy {
  readonly access: Access;
  /** First match wins; without a match a destructive command needs one approval. */
  readonly approvals: readonly ApprovalRule[];
  /** Globs over VM and project names: never restored, deleted, stopped or resized from Slack. */
  readonly protect: readonly string[];
  /** Where changing commands are accepted; undefined: everywhere. */
  readonly channels?: readonly string[] | undefined;
  readonly audit?: { readonly channel: string } | undefined;
  readonly alerts?: { readonly channel: string } | undefined;
  readonly digests: readonly DigestRule[];
  readonly attestation: {
    readonly pins: readonly Pin[];
    /** A restore from an older snapshot needs one approval more. */
    readonly maxSnapshotAgeMs?: number | undefined;
  };
  readonly limits: { readonly requestsPerMinute: number; readonly destructivePerHour: number };
  readonly timing: Timing;
}

export interface Access {
  readonly view: readonly string[];
  readonly operate: readonly string[];
  readonly approve: readonly string[];
  readonly administer: readonly string[];
  readonly breakGlass: readonly string[];
}

export interface ApprovalRule {
  /** Globs over command names written with a dot: `vm.restore`, `vm.*`. */
  readonly operations: readonly string[];
  /** Globs over VM or project names; undefined: all. */
  readonly targets?: readonly string[] | undefined;
  readonly required: number;
  readonly expiresMs: number;
}

export interface DigestRule {
  readonly channel: string;
  /** Local time, `HH:MM`. */
  readonly at: string;
  /** IANA name, e.g. `Europe/Paris`. */
  readonly timezone: string;
  readonly days: readonly Weekday[];
}

export interface Pin {
  readonly targets: readonly string[];
  /** Lower-case hex, without `0x`. */
  readonly measurements: readonly string[];
}

const people = (fallback: string[]) => z.array(who).default(fallback);

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
        at: timeOfDay,
        timezone: timezone.default("UTC"),
        days: days.prefault("daily"),
      }),
    )
    .default([]),
  attestation: section({
    pins: z
      .array(
        section({
          targets: z.array(glob).min(1, "should name at least one VM"),
          measurements: z.array(measurement).min(1, "should hold at least one measurement"),
        }),
      )
      .default([]),
    maxSnapshotAge: duration.optional(),
  }).prefault({}),
  limits: section({
    requestsPerMinute: count(1, 10_000).default(30),
    destructivePerHour: count(0, 10_000).default(5),
  }).prefault({}),
  timing: timing.prefault({}),
}).transform(({ approvals, attestation, ...rest }): Policy => {
  const { maxSnapshotAge: maxSnapshotAgeMs, pins } = attestation;
  const rules = approvals.map(({ expires, ...rule }) => ({
    ...rule,
    expiresMs: expires ?? rest.timing.approvalExpiresMs,
  }));
  return { ...rest, approvals: rules, attestation: { pins, maxSnapshotAgeMs } };
});
