import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Finding } from "../../messages/finding.ts";
import { placeFindings } from "../../core/permit/place-findings.ts";
import { sourcesSection } from "./sources.ts";

/** Findings about the channels that would show the alerts of each source. */
export const judgeSources = (policy: Policy): readonly Finding[] =>
  placeFindings(policy, sectionOf(policy, sourcesSection), {
    section: "sources",
    messages: "alerts",
    closed: (source, place) =>
      `${source}: its alerts go to ${place}, where \`channels\` lets nobody change anything, so they have no buttons for that`,
  });
