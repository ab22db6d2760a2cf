/** The sixteen endpoints, as method and path template: the name of a call in errors, logs and metrics. */
export const endpoints = {
  listProjects: "GET /v1/projects",
  createProject: "POST /v1/projects",
  getProject: "GET /v1/projects/{project_id}",
  updateProject: "PATCH /v1/projects/{project_id}",
  deleteProject: "DELETE /v1/projects/{project_id}",
  listVms: "GET /v1/projects/{project_id}/vms",
  getVm: "GET /v1/vms/{vm_id}",
  startVm: "POST /v1/vms/{vm_id}/start",
  stopVm: "POST /v1/vms/{vm_id}/stop",
  restartVm: "POST /v1/vms/{vm_id}/restart",
  resizeVm: "PATCH /v1/vms/{vm_id}",
  vmMetrics: "GET /v1/vms/{vm_id}/metrics",
  vmAttestation: "GET /v1/vms/{vm_id}/attestation",
  openConsole: "POST /v1/vms/{vm_id}/console",
  takeSnapshot: "POST /v1/vms/{vm_id}/snapshots",
  restoreVm: "POST /v1/vms/{vm_id}/restore",
} as const;

export type Endpoint = (typeof endpoints)[keyof typeof endpoints];
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

const methods = ["GET", "POST", "PATCH", "DELETE"] as const;

export function methodOf(endpoint: Endpoint): Method {
  return methods.find((method) => endpoint.startsWith(method)) ?? "GET";
}

export function templateOf(endpoint: Endpoint): string {
  return endpoint.slice(endpoint.indexOf(" ") + 1);
}
