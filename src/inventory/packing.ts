import { parseJson } from "../text/parse-json.ts";
import type { Project, Specs, Vm } from "../compute/compute.ts";
import type { KnownProject, KnownVm } from "./inventory.ts";

/** One project with all its VMs, sorted by name: the unit that is read, stored, and compared. Immutable. */
export interface Contents {
  project: KnownProject;
  vms: readonly KnownVm[];
}

/** Equal strings and specs are shared: otherwise they would take half the memory. */
const shared = new Map<string, string>();
const sharedSpecs = new Map<string, Specs>();
const maxShared = 1000;

function share(text: string): string {
  const known = shared.get(text);
  if (known !== undefined) return known;
  if (shared.size < maxShared) shared.set(text, text);
  return text;
}

function shareSpecs(specs: Specs): Specs {
  const key = `${specs.cpu}/${specs.memory}/${specs.disk}`;
  const known = sharedSpecs.get(key);
  if (known !== undefined) return known;
  const copy = Object.freeze({ ...specs });
  if (sharedSpecs.size < maxShared) sharedSpecs.set(key, copy);
  return copy;
}

export function contentsOf(
  project: Project | KnownProject,
  vms: readonly (Vm | KnownVm)[],
): Contents {
  const known = knownProject(project);
  const all = vms.map((vm) => knownVm(vm, known));
  return { project: known, vms: all.toSorted(byName) };
}

/** By code unit. */
export function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function knownProject(project: Project | KnownProject): KnownProject {
  const { id, name, type, status, region, createdAt } = project;
  return {
    id,
    name,
    type: share(type),
    status: share(status),
    ...(region !== undefined && { region: share(region) }),
    ...(createdAt !== undefined && { createdAt }),
  };
}

function knownVm(vm: Vm | KnownVm, project: KnownProject): KnownVm {
  const { id, name, status, region, createdAt, specs } = vm;
  return {
    id,
    name,
    projectId: project.id,
    projectName: project.name,
    status: share(status),
    ...(region !== undefined && { region: share(region) }),
    ...(createdAt !== undefined && { createdAt }),
    ...(specs !== undefined && { specs: shareSpecs(specs) }),
  };
}

export function isSameProject(known: KnownProject, seen: Project): boolean {
  return (
    known.name === seen.name &&
    known.type === seen.type &&
    known.status === seen.status &&
    known.region === seen.region &&
    known.createdAt === seen.createdAt
  );
}

export function isSameVm(known: KnownVm | undefined, seen: Vm, projectId: string): boolean {
  return (
    known !== undefined &&
    known.projectId === projectId &&
    known.name === seen.name &&
    known.status === seen.status &&
    known.region === seen.region &&
    known.createdAt === seen.createdAt &&
    known.specs?.cpu === seen.specs?.cpu &&
    known.specs?.memory === seen.specs?.memory &&
    known.specs?.disk === seen.specs?.disk
  );
}

/** Stored as rows without keys, a third of the size. Equal contents pack to equal text. */
interface Packed {
  project: string;
  vms: string;
}

export function pack({ project, vms }: Contents): Packed {
  const { name, type, status, region, createdAt } = project;
  return {
    project: JSON.stringify([name, type, status, region, createdAt]),
    vms: JSON.stringify(
      vms.map(
        ({ id, name: vmName, status: vmStatus, region: vmRegion, createdAt: madeAt, specs }) => {
          const row = [id, vmName, vmStatus, vmRegion, madeAt];
          return specs === undefined ? row : [...row, specs.cpu, specs.memory, specs.disk];
        },
      ),
    ),
  };
}

/** Undefined when it isn't what `pack` makes. */
export function unpack(projectId: string, packed: Packed): Contents | undefined {
  const head = parseRow(packed.project);
  const rows = parseRow(packed.vms);
  if (head === undefined || rows === undefined) return undefined;
  const [name, type, status, region, createdAt] = head;
  if (!isText(name) || !isText(type) || !isText(status)) return undefined;
  const project = { id: projectId, name, type, status, ...texts({ region, createdAt }) };
  const vms: KnownVm[] = [];
  for (const row of rows) {
    if (!Array.isArray(row)) return undefined;
    const [id, vmName, vmStatus, vmRegion, madeAt, cpu, memory, disk]: readonly unknown[] = row;
    if (!isText(id) || !isText(vmName) || !isText(vmStatus)) return undefined;
    vms.push({
      id,
      name: vmName,
      projectId,
      projectName: name,
      status: vmStatus,
      ...texts({ region: vmRegion, createdAt: madeAt }),
      ...(row.length > 5 && { specs: numbers({ cpu, memory, disk }) }),
    });
  }
  return contentsOf(project, vms);
}

function parseRow(text: string): readonly unknown[] | undefined {
  const value = parseJson(text);
  return Array.isArray(value) ? value : undefined;
}

const isText = (value: unknown): value is string => typeof value === "string";

function texts(values: { region: unknown; createdAt: unknown }): {
  region?: string;
  createdAt?: string;
} {
  const { region, createdAt } = values;
  return { ...(isText(region) && { region }), ...(isText(createdAt) && { createdAt }) };
}

function numbers(values: { cpu: unknown; memory: unknown; disk: unknown }): Specs {
  const { cpu, memory, disk } = values;
  return {
    ...(typeof cpu === "number" && { cpu }),
    ...(typeof memory === "number" && { memory }),
    ...(typeof disk === "number" && { disk }),
  };
}
