import { parseDuration } from "./durations.ts";
import { lastDay } from "./policy-schema.ts";
import { measurement } from "./policy-values.ts";

type Section = Readonly<Record<string, unknown>>;

/** A valid policy file as it was written, without defaults. */
type Stated = Readonly<{
  access?: Section;
  teams?: Readonly<Record<string, Section>>;
  approvals?: readonly StatedRule[];
  protect?: readonly string[];
  attestation?: Readonly<{
    pins?: readonly { targets: readonly string[]; measurements: readonly string[] }[];
    appraisal?: readonly StatedAppraisal[];
    maxSnapshotAge?: string;
    endorsements?: unknown;
    refresh?: unknown;
  }>;
  limits?: Section;
  services?: Section;
  timing?: { approvalExpires?: string };
}>;

interface StatedRule extends Section {
  required?: number;
  votes?: readonly { from: readonly string[]; required?: number }[];
  expires?: string;
}

interface StatedAppraisal extends Section {
  targets?: readonly string[];
  allow?: readonly string[];
  accept?: readonly { until: string }[];
  minimumTcb?: readonly { product: string; models?: readonly number[] }[];
  vmpl?: number;
  requireBinding?: boolean;
  maxAge?: string;
}

/**
 * The sections that policy versions are computed from. They contain what the file states and
 * nothing that a release of Gatehouse adds, so that the versions of one file are equal in every
 * release. Where a file states nothing, the value that 1.0 filled in stands here. These
 * values never change, whatever the defaults of `policySchema` become, and a key that is added
 * there later appears here only when a file states it. Keys that features have in teams
 * (`ofFeatures`) aren't rules and are left out.
 */
export function statedRules(
  {
    access,
    teams = {},
    approvals = [],
    protect = [],
    attestation = {},
    limits,
    services = {},
    timing,
  }: Stated,
  ofFeatures: readonly string[],
) {
  const leftOut = Object.fromEntries(ofFeatures.map((name) => [name, undefined]));
  const { pins = [], appraisal = [], maxSnapshotAge, ...others } = attestation;
  return {
    access: { view: ["*"], operate: [], approve: [], administer: [], breakGlass: [], ...access },
    teams: Object.fromEntries(
      Object.entries(teams).map(([name, team]) => [
        name,
        { view: [], operate: [], approve: [], breakGlass: [], ...team, ...leftOut },
      ]),
    ),
    approvals: approvals.map(({ expires, required, votes, ...rule }) => {
      const seats = votes?.map((seat) => ({ ...seat, required: seat.required ?? 1 }));
      return {
        ...rule,
        votes: seats,
        required: required ?? seats?.reduce((sum, seat) => sum + seat.required, 0),
        expiresMs: parseDuration(expires ?? timing?.approvalExpires ?? "15m"),
      };
    }),
    protect,
    attestation: {
      ...others,
      endorsements: undefined,
      refresh: undefined,
      pins: pins.map((pin) => ({
        ...pin,
        measurements: pin.measurements.map((value) => measurement.parse(value)),
      })),
      appraisal: appraisal.map(statedAppraisal),
      maxSnapshotAgeMs: maxSnapshotAge === undefined ? undefined : parseDuration(maxSnapshotAge),
    },
    limits: {
      requestsPerMinute: 30,
      draftsPerPerson: 10,
      destructivePerHour: 5,
      breakGlassPerHour: 5,
      ...limits,
    },
    services,
  };
}

function statedAppraisal({
  targets,
  allow = [],
  accept = [],
  minimumTcb = [],
  vmpl = 0,
  requireBinding = false,
  maxAge,
  ...others
}: StatedAppraisal) {
  return {
    targets,
    policy: {
      ...others,
      allows: allow,
      statuses: accept.map((status) => ({
        advisories: [],
        ...status,
        until: lastDay.parse(status.until),
      })),
      minimumTcb: minimumTcb.map(({ product, models, ...tcb }) => ({ product, models, tcb })),
      vmpl,
      needsBinding: requireBinding,
      maxEndorsementAgeMs: maxAge === undefined ? undefined : parseDuration(maxAge),
    },
  };
}
