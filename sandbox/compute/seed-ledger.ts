import type { Edits } from "./edits.ts";

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
