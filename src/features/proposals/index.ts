import type { Policy } from "../../config/policy-file.ts";
import { callerName } from "../../api/callers.ts";
import { placeFindings } from "../../core/permit/place-findings.ts";
import { defineFeature } from "../define-feature.ts";
import { proposalPaths } from "./describe-proposals.ts";
import { askDismissal, dismissalCallback, dismissProposal, runProposal } from "./press-proposal.ts";
import { proposalSource } from "./proposal-source.ts";
import { proposalTools } from "./proposal-tools.ts";
import { createProposals, proposalsOf } from "./proposals.ts";
import { proposalRoutes } from "./propose.ts";
import { takeProposal } from "./take-proposal.ts";

/** Lets services and agents propose changes, which people run. */
export const proposals = defineFeature({
  name: "proposals",
  judgePolicy: judgeServices,
  needs: ["config", "log", "redis", "key", "store", "changes", "web", "at"],
  start(on) {
    const all = createProposals(on.redis, on.key, on.at);
    return {
      services: [proposalsOf.providedBy(all)],
      presses: { "proposal:run": runProposal, "proposal:dismiss": askDismissal },
      forms: { [dismissalCallback]: { check: dismissProposal } },
      messages: [proposalSource({ ...on, commands: on.changes, proposals: all })],
      async untold() {
        const untold = await all.untold();
        return untold.map(({ record }) => ({
          by: callerName(record.by),
          words: ["proposal", "proposals"],
        }));
      },
      beforeRequest: takeProposal,
      afterFreeze: all.refresh,
      routes: proposalRoutes,
      paths: proposalPaths,
      tools: proposalTools,
    };
  },
});

/** Findings about the channels that would show the proposals of each service. */
function judgeServices(policy: Policy) {
  const every = Object.entries(policy.services);
  const proposers = Object.fromEntries(every.filter(([, { propose }]) => propose.length > 0));
  return placeFindings(policy, proposers, {
    section: "services",
    what: "proposals",
    closed: (service, place) =>
      `${service}: \`channels\` lets nobody change anything in ${place}, so its proposals are posted elsewhere or refused`,
  });
}
