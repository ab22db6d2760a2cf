/** What the compute client promises of its values, written down a second time and not taken from its schemas. */
export type Kind =
  | "projects"
  | "vms"
  | "vm"
  | "project"
  | "metrics"
  | "attestation"
  | "console"
  | "accepted";

type Check = (value: unknown) => string | undefined;

const text: Check = (value) => (typeof value === "string" ? undefined : "no text");
const full: Check = (value) =>
  typeof value === "string" && value !== "" ? undefined : "an empty text";
const number: Check = (value) =>
  typeof value === "number" && Number.isFinite(value) ? undefined : "no number";
const flag: Check = (value) => (typeof value === "boolean" ? undefined : "neither yes nor no");

const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) ? value.map(check).find((fault) => fault !== undefined) : "no list";

/** An object with these fields and no others; those with `?` may be missing. */
function object(fields: Record<string, Check>): Check {
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return "no object";
    if (Object.getPrototypeOf(value) !== Object.prototype) return "another prototype";
    const own = new Map<string, unknown>(Object.entries(value));
    for (const [name, check] of Object.entries(fields)) {
      const key = name.replace("?", "");
      const is = own.get(key);
      own.delete(key);
      if (is === undefined && name.endsWith("?")) continue;
      const fault = check(is);
      if (fault !== undefined) return `${key}: ${fault}`;
    }
    const [extra] = own.keys();
    return extra === undefined ? undefined : `a field ${extra}`;
  };
}

const specs = object({ "cpu?": number, "memory?": number, "disk?": number });
const vm = object({
  id: full,
  projectId: full,
  name: text,
  status: full,
  "region?": text,
  "specs?": specs,
  "ipAddress?": text,
  "createdAt?": text,
  "updatedAt?": text,
  "attestation?": object({ "enabled?": flag, "measurement?": text }),
});
const project = object({
  id: full,
  name: text,
  type: full,
  status: full,
  "region?": text,
  "createdAt?": text,
  "updatedAt?": text,
  "specs?": specs,
});
const samples = listOf(object({ timestamp: text, value: number }));

const checks: Record<Kind, Check> = {
  vm,
  project,
  vms: listOf(vm),
  projects: listOf(project),
  metrics: object({ cpuUsage: samples, memoryUsage: samples, "diskUsage?": number }),
  attestation: object({
    "report?": text,
    "measurement?": text,
    "verified?": flag,
    "timestamp?": text,
    "platform?": object({ "vendor?": text, "model?": text, "firmwareVersion?": text }),
  }),
  console: object({
    url: (value) =>
      typeof value === "string" && value.toLowerCase().startsWith("wss:")
        ? undefined
        : "no secure address",
    "expiresAt?": text,
  }),
  accepted: object({ status: number, "vm?": vm, "project?": project, "snapshotId?": full }),
};

/** What is wrong with it, or undefined. */
export function faultIn(kind: Kind, value: unknown): string | undefined {
  return checks[kind](value);
}
