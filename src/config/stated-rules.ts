import { parseDuration } from "./durations.ts";
import { lastDay } from "./policy-schema.ts";
import { measurement } from "./policy-values.ts";

type Section = Readonly<Record<string, unknown>>;

/** A valid file, word for word. */
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
 * The sections that versions are made of: what a file says, and nothing that Gatehouse adds to it: the versions of one file are equal in every release. What a file
 * leaves out stands here as version 0.2.0 filled it in. Those values never change, whatever the defaults of `policySchema`
 * become, and a key that is added there later appears here only when a file says it. What features have in teams (`ofFeatures`) is no
 * rule.
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
      statuses: accept.map((one) => ({ advisories: [], ...one, until: lastDay.parse(one.until) })),
      minimumTcb: minimumTcb.map(({ product, models, ...tcb }) => ({ product, models, tcb })),
      vmpl,
      needsBinding: requireBinding,
      maxEndorsementAgeMs: maxAge === undefined ? undefined : parseDuration(maxAge),
    },
  };
}
