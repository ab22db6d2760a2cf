import type { Policy } from "../config/policy-file.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import { operationsOf } from "../core/permit/approval-rule.ts";
import { alerts } from "./alerts/index.ts";
import { attestation } from "./attest/index.ts";
import { breakGlass } from "./break-glass/index.ts";
import { consoles } from "./consoles/index.ts";
import { type Feature, commandsWith } from "./define-feature.ts";
import { freezes } from "./freeze/index.ts";
import { digests } from "./digests/index.ts";
import { home } from "./home/index.ts";
import { mcp } from "./mcp/index.ts";
import { outages } from "./outages/index.ts";
import { proposals } from "./proposals/index.ts";
import { reads } from "./reads/index.ts";
import { rollouts } from "./rollouts/index.ts";
import { snapshots } from "./snapshots/index.ts";
import { subscriptions } from "./subscriptions/index.ts";

/** Everything that Gatehouse can do beyond commands. A line that goes takes its feature with it. */
export const features: readonly Feature[] = [
  attestation,
  rollouts,
  snapshots,
  consoles,
  alerts,
  proposals,
  reads,
  mcp,
  outages,
  freezes,
  breakGlass,
  digests,
  subscriptions,
  home,
];

/** Those of features, too, in the order of help. */
export const commands = commandsWith(features);

/** The commands and sections that gatehouse.yml can name. */
export const policyTerms: PolicyTerms = {
  operations: operationsOf(commands),
  sections: features.flatMap(({ policy = [] }) => policy),
};

/** What `doctor` and `policy check` find in what gatehouse.yml says of features. */
const judgePolicy = (policy: Policy) =>
  features.flatMap((feature) => feature.judgePolicy?.(policy) ?? []);

/** What programs of a terminal are handed: they know no feature. */
export const handedToPrograms = { commands, terms: policyTerms, judgePolicy };
