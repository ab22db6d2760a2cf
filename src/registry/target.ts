/** As seen at the request. Only `id` decides: a name reused since must not redirect the request. */
export interface Target {
  kind: "vm" | "project";
  id: string;
  name: string;
  /** For a project, its own ID. */
  projectId: string;
  projectName?: string;
  status: string;
  createdAt?: string;
  specs?: { cpu?: number; memory?: number; disk?: number };
}
