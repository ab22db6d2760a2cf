import type { VmSpecs } from "./records.ts";
import type { World } from "./world.ts";
import type { Edits } from "./edits.ts";

const day = 86_400_000;
const small: VmSpecs = { cpu: 2, memory: 8, disk: 50 };
const usual: VmSpecs = { cpu: 4, memory: 16, disk: 100 };
const large: VmSpecs = { cpu: 16, memory: 64, disk: 500 };

type SeedVm = [name: string, status: string, specs: VmSpecs];

const demo: { name: string; region: string; type?: string; vms: SeedVm[] }[] = [
  {
    name: "payments",
    region: "eu-west-1",
    vms: [
      ["web-1", "RUNNING", usual],
      ["web-2", "RUNNING", usual],
      ["db-1", "RUNNING", large],
    ],
  },
  { name: "vault", region: "eu-west-1", vms: [["vault-1", "RUNNING", small]] },
  // A name that payments has too: "web-1" alone must be asked about.
  {
    name: "staging",
    region: "eu-central-1",
    vms: [
      ["web-1", "RUNNING", small],
      ["worker-1", "STOPPED", small],
    ],
  },
  {
    name: "ml",
    region: "us-east-1",
    vms: [
      ["gpu-1", "STOPPED", large],
      ["train-7", "ERROR", large],
    ],
  },
  { name: "docs-site", region: "eu-west-1", type: "GIT_DEPLOY", vms: [] },
  { name: "edge-cache", region: "us-east-1", type: "CONTAINER", vms: [] },
];

/** A small company's world; ids can be told from names: `prj-payments`, `vm-payments-web-1`. */
export function seedDemo(world: World, now: number = Date.now()): void {
  for (const [index, { name, region, type, vms }] of demo.entries()) {
    const createdAt = now - (90 - index * 11) * day;
    const project = world.addProject({ id: `prj-${name}`, name, region, type, createdAt });
    for (const [vmName, status, specs] of vms) {
      world.addVm({
        id: `vm-${name}-${vmName}`,
        projectId: project.id,
        name: vmName,
        status,
        specs,
        createdAt,
      });
    }
  }
}

export interface Fleet {
  projects: number;
  vmsPerProject: number;
}

/** Many projects of the same kind: `team-0017`, with `vm-0017-003`. One VM in 50 is stopped. */
export function seedFleet(world: World, fleet: Fleet, now: number = Date.now()): void {
  const createdAt = now - 30 * day;
  let count = 0;
  for (let at = 0; at < fleet.projects; at += 1) {
    const number = String(at).padStart(4, "0");
    const project = world.addProject({ id: `prj-${number}`, name: `team-${number}`, createdAt });
    for (let vm = 0; vm < fleet.vmsPerProject; vm += 1) {
      const name = `vm-${number}-${String(vm).padStart(3, "0")}`;
      const status = count % 50 === 49 ? "STOPPED" : "RUNNING";
      // One object for all specs: a fleet of 100,000 should fit into little memory.
      world.addVm({ id: name, projectId: project.id, name, status, specs: usual, createdAt });
      count += 1;
    }
  }
}

/** What the ledger's VMs are pinned to, with 2 CPUs. */
export const ledgerImage = "ledger 4.2";

/**
 * Four pinned VMs for attestation to tell apart: one as it should be, one whose image was changed, one that its host can debug,
 * and one whose vendor's revocation list has run out where the world was started so (`ranOut`).
 */
export function seedLedger(edit: Edits): void {
  const project = edit.addProject({ id: "prj-ledger", name: "ledger" });
  const machines = [
    { image: ledgerImage },
    { image: "ledger 4.2, with a back door" },
    { image: ledgerImage, platform: "TDX", debug: true },
    { image: ledgerImage, platform: "Turin" },
  ] as const;
  for (const [at, machine] of machines.entries()) {
    const name = `ledger-${at + 1}`;
    const vm = edit.addVm({
      project,
      name,
      id: `vm-${name}`,
      specs: { cpu: 2, memory: 8, disk: 50 },
    });
    edit.setMachine({ vm, ...machine });
  }
}
