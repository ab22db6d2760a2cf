import type { Policy } from "../../config/policy-file.ts";
import { placeFindings } from "../../core/permit/place-findings.ts";
import type { MadeRequest } from "../../talk/contributions.ts";
import { requestGuardOf } from "../../talk/service-keys.ts";
import { defineFeature } from "../define-feature.ts";
import { proposingOf } from "../proposing.ts";
import { type Untold, untoldOf } from "../status-part.ts";
import { askOthers } from "./ask-others.ts";
import { proposalPaths } from "./describe-proposals.ts";
import { askDismissal, dismissalCallback, dismissProposal, runProposal } from "./press-proposal.ts";
import { proposalSource } from "./proposal-source.ts";
import { proposalTools } from "./proposal-tools.ts";
import { createProposals, proposalsOf, proposerName } from "./proposals.ts";
import { proposalRoutes } from "./propose.ts";
import { takeProposal } from "./take-proposal.ts";

/** Lets services, agents, and people who lack a right propose changes, which others run. */
export const proposals = defineFeature({
  name: "proposals",
  judgePolicy: judgeServices,
  needs: ["config", "log", "redis", "key", "store", "changes", "attestationNote", "web", "at"],
  start(on) {
    const all = createProposals(on.redis, on.key, on.at);

    async function untoldProposals(): Promise<readonly Untold[]> {
      const untold = await all.untold();
      return untold.map(({ record }) => ({
        source: proposerName(record.by),
        words: ["proposal", "proposals"],
      }));
    }

    /** Shows on the card of a proposal what became of its request. */
    async function redrawFor({ origin }: MadeRequest): Promise<void> {
      if (origin.kind === "proposal") await all.redraw(origin.proposal);
    }

    return {
      provides: [
        proposalsOf.providedBy(all),
        proposingOf.providedBy({ propose: askOthers }),
        requestGuardOf.providedBy(takeProposal),
        untoldOf.providedBy(untoldProposals),
      ],
      presses: { "proposal:run": runProposal, "proposal:dismiss": askDismissal },
      forms: { [dismissalCallback]: { beforeAck: dismissProposal } },
      messages: [proposalSource({ ...on, commands: on.changes, proposals: all })],
      on: {
        requestMade: redrawFor,
        requestEnded: ({ record }) => redrawFor(record),
        freezeChanged: all.refresh,
      },
      api: { routes: proposalRoutes, paths: proposalPaths, tools: proposalTools },
    };
  },
});

/** Findings about the channels that would show the proposals of each service. */
function judgeServices(policy: Policy) {
  const every = Object.entries(policy.services);
  const proposers = Object.fromEntries(every.filter(([, { propose }]) => propose.length > 0));
  return placeFindings(policy, proposers, {
    section: "services",
    messages: "proposals",
    closed: (service, place) =>
      `${service}: \`channels\` lets nobody change anything in ${place}, so its proposals are posted elsewhere or refused`,
  });
}
