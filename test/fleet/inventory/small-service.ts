import {
  type Compute,
  type Project,
  type Vm,
  ComputeError,
} from "../../../src/fleet/compute/compute.ts";
import { noService } from "./no-service.ts";

/** A service with projects and VMs only, for the inventory's tests: what it holds and how it fails is set by hand. */
export interface SmallService extends Compute {
  readonly held: Map<string, { project: Project; vms: Vm[] }>;
  /** Calls so far, as `list`, `vms p1`, `get p1`. */
  readonly calls: string[];
  /** How many calls were open at the same time, at most. */
  maxOpen: number;
  /** Asked before each answer: throw what should fail, wait as long as it should take. */
  before: (call: string) => void | Promise<void>;
  /** Asked once the answer is made, and before it arrives: what changes meanwhile is not in it. */
  after: (call: string) => void | Promise<void>;
  /** What the list leaves out, though it exists. */
  readonly hiddenInList: Set<string>;
}

export function failing(kind: "not-found" | "unreachable" | "refused" = "unreachable"): never {
  throw new ComputeError(kind, "GET /v1/…", `the service is away (${kind})`);
}

/** `{ shop: ["web-1", "web-2"] }`: ids are `p-shop` and `v-shop-web-1`. */
export function smallService(projects: Record<string, readonly string[]>): SmallService {
  const held = new Map<string, { project: Project; vms: Vm[] }>();
  for (const [name, vms] of Object.entries(projects)) {
    const project = projectNamed(name);
    held.set(project.id, { project, vms: vms.map((vm) => vmNamed(project, vm)) });
  }
  let open = 0;
  async function answer<T>(call: string, from: () => T): Promise<T> {
    small.calls.push(call);
    open += 1;
    small.maxOpen = Math.max(small.maxOpen, open);
    try {
      await small.before(call);
      await Promise.resolve();
      const made = from();
      await small.after(call);
      return made;
    } finally {
      open -= 1;
    }
  }
  const of = (id: string) => held.get(id) ?? failing("not-found");
  const small: SmallService = {
    ...noService,
    calls: [],
    maxOpen: 0,
    before: () => {},
    after: () => {},
    hiddenInList: new Set(),
    held,
    projects: {
      ...noService.projects,
      listAll: () =>
        answer("list", () =>
          [...held.values()]
            .map(({ project }) => structuredClone(project))
            .filter(({ id }) => !small.hiddenInList.has(id)),
        ),
      get: (id) => answer(`get ${id}`, () => structuredClone(of(id).project)),
      vms: (id) => answer(`vms ${id}`, () => structuredClone(of(id).vms)),
    },
    vms: {
      ...noService.vms,
      get: (id) =>
        answer(`vm ${id}`, () => {
          const all = [...held.values()].flatMap(({ vms }) => vms);
          return structuredClone(all.find((vm) => vm.id === id) ?? failing("not-found"));
        }),
    },
  };
  return small;
}

export function projectNamed(name: string, over: Partial<Project> = {}): Project {
  return { id: `p-${name}`, name, type: "TEE_VM", status: "ACTIVE", region: "eu-1", ...over };
}

export function vmNamed(project: Project, name: string, over: Partial<Vm> = {}): Vm {
  return {
    id: `v-${project.name}-${name}`,
    projectId: project.id,
    name,
    status: "RUNNING",
    region: "eu-1",
    createdAt: "2026-11-01T08:00:00Z",
    specs: { cpu: 2, memory: 4, disk: 20 },
    ...over,
  };
}
