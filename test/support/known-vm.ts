import type { KnownVm } from "../../src/fleet/inventory/inventory.ts";

export const knownVm = (name: string, status = "RUNNING", projectName = "shop"): KnownVm => ({
  id: `vm-${name}`,
  name,
  projectId: `p-${projectName}`,
  projectName,
  status,
  createdAt: "2020-01-01T00:00:00Z",
});
