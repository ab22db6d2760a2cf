import type { PolicyTerms } from "../src/config/policy-section.ts";

const rights = `# yaml-language-server: $schema=gatehouse.schema.json
# Who may do what with Gatehouse. Copy to gatehouse.yml and replace the IDs with yours.
# Unknown keys are refused, with their line. Without this file everyone can view and no one can change anything.

# version: 1 # raise it with every change: a process with a lower one then changes nothing (Helm sets it)

access: # Slack user IDs (U…), user group IDs (S…), or "*" for every full member of the workspace
  view: ["*"]
  operate: ["S01ONCALL"] # start, stop, restart, resize, snapshot, create, update, console
  approve: ["S02LEADS"] # approve what others requested; freeze
  administer: ["U09ADMIN"] # freeze and thaw, audit, settings of other channels, break-glass review
  breakGlass: [] # can skip approval with --break-glass "why"; announced, and reviewed afterwards

approvals: # first match wins; without a match, destructive commands need one approval
  - operations: ["vm.restore", "project.delete"] # command names with a dot; globs allowed
    targets: ["prod-*"] # optional: VM or project names, globs
    required: 2
    expires: 15m

protect: ["vault-*"] # can't be created, restored, deleted, stopped, resized, or renamed from Slack
confirm: ["prod-*"] # interrupting one of these VMs must be confirmed, typed or pressed, whatever its status; omitted: none
# channels: ["C01OPS"] # where changing commands are accepted; omitted: everywhere
# sharedChannels: ["C07VENDOR"] # shared with another company, but Gatehouse can post there; in others it posts nothing

# teams: # rights over a team's projects; \`access\` then covers what no team has (docs/policy.md)
#   payments:
#     projects: ["payments", "payments-*"] # IDs, names, or globs over names
#     view: ["S03SUPPORT"]
#     operate: ["S04PAYONCALL"]
#     approve: ["S05PAYLEADS"]
#     channel: C04PAYOPS

audit: { channel: C03AUDIT } # daily head of the audit chain, break-glass, policy changes, freezes
alerts: { channel: C02STATUS } # attestation drift, VMs with problems, outcome unknown
`;

const others = `# services: # programs that view and propose; people run what they propose
#   deploy:
#     tokens: ["sha256:<64 hex digits>"] # node gatehouse.mjs token makes a token and its hash
#     view: ["payments"] # projects: IDs, names, or globs over names
#     propose: [{ operations: ["vm.snapshot"], targets: ["payments/web-*"] }]
#     channel: C01OPS # where its proposals are posted
#     notify: ["S01ONCALL"] # mentioned once on the card of a proposal

# attestation:
#   endorsements: endorsements # a folder of what Intel and AMD have signed (docs/attestation.md); without it nothing is verified
#   refresh: {} # fetch what the folder lacks from Intel and AMD; omitted: an operator fills it
#   maxSnapshotAge: 7d # restoring an older snapshot needs one more approval
#   pins: # the measurements these VMs must have, in hex
#     - { targets: ["prod-*"], measurements: ["<hex>"] } # attested every timing.driftWatch (15m); drift is reported in \`alerts\`
#   appraisal: # what is accepted even if it isn't current; the first rule that matches a VM counts
#     - { targets: ["test-*"], accept: [{ status: OutOfDate, advisories: [INTEL-SA-00837], until: 2026-12-31 }] }

limits:
  requestsPerMinute: 30 # per person: changes, break-glass, consoles
  draftsPerPerson: 10 # waiting for approval at once
  destructivePerHour: 5 # sent, by everyone together
  breakGlassPerHour: 5 # by everyone together; not counted among the others

timing: { httpTimeout: 15s, quiesce: 60s, settleDeadline: 15m, staleAfter: 10m, outage: 30s } # the defaults
`;

/** gatehouse.example.yml: the sections of the core, and between them those of the features that are there. */
export const renderExamplePolicy = ({ sections }: Pick<PolicyTerms, "sections">): string =>
  [rights, ...sections.flatMap(({ example = [] }) => example), others].join("\n");
