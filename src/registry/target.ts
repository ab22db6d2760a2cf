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
  /** Another VM had the same name: people read `project/name`. */
  sharesName?: boolean;
}

/** The name that tells it from others: `web-2`, or `payments/web-1` where another VM has that name. */
export function calledName({ kind, name, projectName, projectId, sharesName }: Target): string {
  return kind === "vm" && sharesName ? `${projectName ?? projectId}/${name}` : name;
}
