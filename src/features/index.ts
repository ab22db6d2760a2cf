import type { Policy } from "../config/policy-file.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import { operationsOf } from "../core/permit/approval-rule.ts";
import { alerts } from "./alerts/index.ts";
import { ask } from "./ask/index.ts";
import { attestation } from "./attest/index.ts";
import { breakGlass } from "./break-glass/index.ts";
import { consoles } from "./consoles/index.ts";
import { type Feature, commandsWith } from "./define-feature.ts";
import { diagnosis } from "./diagnosis/index.ts";
import { freezes } from "./freeze/index.ts";
import { digests } from "./digests/index.ts";
import { home } from "./home/index.ts";
import { mcp } from "./mcp/index.ts";
import { nights } from "./night/index.ts";
import { outages } from "./outages/index.ts";
import { proposals } from "./proposals/index.ts";
import { reads } from "./reads/index.ts";
import { rehearsal } from "./rehearsal/index.ts";
import { remedies } from "./remedies/index.ts";
import { rollouts } from "./rollouts/index.ts";
import { snapshots } from "./snapshots/index.ts";
import { subscriptions } from "./subscriptions/index.ts";

/**
 * All features. A process without a line runs without that feature. CONTRIBUTING.md says how to
 * remove one for good.
 */
export const features: readonly Feature[] = [
  attestation,
  rollouts,
  snapshots,
  consoles,
  alerts,
  remedies,
  proposals,
  ask,
  reads,
  mcp,
  outages,
  freezes,
  breakGlass,
  rehearsal,
  digests,
  nights,
  subscriptions,
  diagnosis,
  home,
];

/** All commands, including those of features, in the order of help. */
export const commands = commandsWith(features);

/** The commands and sections that gatehouse.yml can name. */
export const policyTerms: PolicyTerms = {
  operations: operationsOf(commands),
  sections: features.flatMap(({ policy = [] }) => policy),
};

/** Everything that features find in gatehouse.yml, for `doctor` and `policy check`. */
const judgePolicy = (policy: Policy) =>
  features.flatMap((feature) => feature.judgePolicy?.(policy) ?? []);

/** What terminal programs get, because they may not import features. */
export const handedToPrograms = { commands, terms: policyTerms, judgePolicy };
