/**
 * What a request is about, with the fingerprint that was seen when it was asked for. The id is what counts: a name
 * that changes owner between asking and doing must not redirect the request.
 */
export interface Target {
  kind: "vm" | "project";
  id: string;
  name: string;
  /** The project of a VM; for a project itself its own id. */
  projectId: string;
  projectName?: string;
  status: string;
  createdAt?: string;
  specs?: { cpu?: number; memory?: number; disk?: number };
}
