import { type Pace, usualPace } from "../src/config/policy-schema.ts";
import { launchMeasurement, ledgerImage, seedLedger } from "../sandbox/compute/index.ts";
import { addChannel, addPerson, seedDemo, type Workspace } from "../sandbox/slack/index.ts";
import { apiEnv, apiPolicy } from "./programs.ts";
import type { WorldOptions } from "./world.ts";

/**
 * The world of demo and tour: two teams share one Gatehouse. Payments works in #ops: Olivia is on call, Amir leads. Search
 * works in #search: Mia is on call, Noor leads. Ben is in neither team, Vera looks at everything, Ada administers.
 * `restartExpires`: how long a restart in search waits for its lead.
 */
export function demoWorld({ restartExpires = "15m" } = {}) {
  return {
    policy: policyWith(restartExpires),
    pace: demoPace,
    slack: { seed: seedTeams },
    prepare({ edit }) {
      seedLedger(edit);
      const project = edit.addProject({ id: "prj-search", name: "search" });
      for (const name of ["index-1", "index-2"])
        edit.addVm({ project, name, id: `vm-search-${name}` });
    },
    ranOut: ["Turin"],
    env: apiEnv,
  } satisfies WorldOptions;
}

export const demoPace: Pace = {
  ...usualPace,
  claimWindowMs: 1_000,
  pollFirstMs: 200,
  pollMostMs: 2_000,
  stableGapMs: 400,
  restartMarkMs: 30_000,
  heartbeatMs: 500,
  sweepMs: 1_000,
  remedyMs: 20_000,
};

export const pinnedOfWeb2 = launchMeasurement("web-2 v1", 4);

const policyWith = (restartExpires: string) => `access: # what no team has
  view: ["*"]
  operate: ["S01ONCALL"]
  approve: ["S02LEADS"]
  administer: ["U0ADA"]
  breakGlass: ["U0ADA"]
teams:
  payments:
    projects: ["payments", "ledger", "staging"]
    view: ["U0VERA"]
    operate: ["S01ONCALL"]
    approve: ["S02LEADS"]
    breakGlass: ["U0ADA"]
    channel: C01OPS
  search:
    projects: ["search"]
    view: ["U0VERA"]
    operate: ["U0MIA"]
    approve: ["U0NOOR"]
    channel: C08SEARCH
approvals:
  - { operations: ["project.delete"], targets: ["staging", "payments", "ledger"], required: 2, expires: 15m }
  - { operations: ["vm.restart"], targets: ["search/*"], required: 1, expires: ${restartExpires} }
protect: ["vault-*"]
attestation:
  endorsements: endorsements
  pins:
    - { targets: ["payments/web-2"], measurements: ["${pinnedOfWeb2}"] }
    - { targets: ["ledger-*"], measurements: ["${launchMeasurement(ledgerImage, 2)}"] }
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
timing: { httpTimeout: 3s, quiesce: 8s }
${apiPolicy}`;

/** The workspace of most tests, and the people and the channel of search. */
function seedTeams(workspace: Workspace): void {
  seedDemo(workspace);
  const bot = workspace.app.botUserId;
  const newcomers = [
    { id: "U0MIA", name: "mia", realName: "Mia Marsh" },
    { id: "U0NOOR", name: "noor", realName: "Noor Nasser" },
    { id: "U0BEN", name: "ben", realName: "Ben Brook" },
  ];
  for (const person of newcomers) {
    addPerson(workspace, person);
    for (const channel of ["C02STATUS", "C04RANDOM"])
      workspace.channels.get(channel)?.memberIds.add(person.id);
    const direct = person.id.replace("U0", "D0");
    addChannel(workspace, { id: direct, name: "", kind: "direct", members: [person.id, bot] });
  }
  addChannel(workspace, {
    id: "C08SEARCH",
    name: "search",
    topic: "The search team",
    members: ["U0MIA", "U0NOOR", "U0VERA", "U0ADA", bot],
  });
}
