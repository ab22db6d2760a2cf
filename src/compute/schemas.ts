import * as z from "zod";
import type { AttestationReport, ConsoleSession, Metrics, Project, Specs, Vm } from "./compute.ts";
import { isRecord, own } from "./body.ts";

/**
 * What the service's records must hold and what they may hold. Unknown fields fall away, unknown enum values stay as
 * they are, an optional field that is null or of the wrong type counts as missing. A record without a name goes by its id.
 */

/** Optional: dropped when it can't be used. */
const maybe = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined);
const text = maybe(z.string());
const number = maybe(z.number());
const id = z.union([z.string().min(1), z.number().transform(String)]);
const status = z.string().min(1);

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Leaves out what is undefined, so that "missing" has one form. */
function present<T extends object>(fields: T): Present<T> {
  const kept: Present<T> = {};
  for (const key in fields) {
    const value = fields[key];
    if (isPresent(value)) kept[key] = value;
  }
  return kept;
}

function isPresent<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}

export const specsSchema = z
  .object({ cpu: number, memory: number, disk: number })
  .transform((specs): Specs => present(specs));

const attestationMark = z
  .object({ enabled: maybe(z.boolean()), measurement: text })
  .transform((mark): NonNullable<Vm["attestation"]> => present(mark));

const vmFields = z.object({
  id,
  name: text,
  status,
  region: text,
  specs: maybe(specsSchema),
  ip_address: text,
  created_at: text,
  updated_at: text,
  attestation: maybe(attestationMark),
});

function toVm(vm: z.output<typeof vmFields>): Omit<Vm, "projectId"> {
  return {
    id: vm.id,
    name: vm.name ?? vm.id,
    status: vm.status,
    ...present({
      region: vm.region,
      specs: vm.specs,
      ipAddress: vm.ip_address,
      createdAt: vm.created_at,
      updatedAt: vm.updated_at,
      attestation: vm.attestation,
    }),
  };
}

export const vmSchema = vmFields
  .extend({ project_id: id })
  .transform((vm): Vm => ({ ...toVm(vm), projectId: vm.project_id }));

/** In the list of a project's VMs the project goes without saying. */
export type ListedVm = Omit<Vm, "projectId"> & { projectId: string | undefined };

export const listedVmSchema = vmFields
  .extend({ project_id: maybe(id) })
  .transform((vm): ListedVm => ({ ...toVm(vm), projectId: vm.project_id }));

export const projectSchema = z
  .object({
    id,
    name: text,
    type: z.string().min(1),
    status,
    region: text,
    created_at: text,
    updated_at: text,
    specs: maybe(specsSchema),
  })
  .transform((project): Project => ({
    id: project.id,
    name: project.name ?? project.id,
    type: project.type,
    status: project.status,
    ...present({
      region: project.region,
      createdAt: project.created_at,
      updatedAt: project.updated_at,
      specs: project.specs,
    }),
  }));

const sample = z.object({ timestamp: z.string(), value: z.number() });
const samples = z
  .array(z.unknown())
  .catch([])
  .transform((all) =>
    all.map((each) => sample.safeParse(each).data).filter((each) => each !== undefined),
  );

export const metricsSchema = z
  .object({ cpu_usage: samples, memory_usage: samples, disk_usage: number })
  .transform((metrics): Metrics => ({
    cpuUsage: metrics.cpu_usage,
    memoryUsage: metrics.memory_usage,
    ...present({ diskUsage: metrics.disk_usage }),
  }));

const platform = z
  .object({ vendor: text, model: text, firmware_version: text })
  .transform((it): NonNullable<AttestationReport["platform"]> =>
    present({ vendor: it.vendor, model: it.model, firmwareVersion: it.firmware_version }),
  );

export const attestationSchema = z
  .object({
    report: text,
    measurement: text,
    verified: maybe(z.boolean()),
    timestamp: text,
    platform: maybe(platform),
  })
  .transform((report): AttestationReport => present(report));

/** Secure WebSocket only: the address carries a token. */
export const consoleSchema = z
  .object({
    url: z.string().refine((url) => URL.parse(url)?.protocol === "wss:"),
    expires_at: text,
  })
  .transform((session): ConsoleSession => ({
    url: session.url,
    ...present({ expiresAt: session.expires_at }),
  }));

const wrappers = [
  "vm",
  "project",
  "console",
  "session",
  "metrics",
  "attestation",
  "data",
  "result",
];

/** The record inside `{vm: …}`, `{data: {project: …}}` and the like; a value that has one of `marks` is the record. */
export function unwrap(value: unknown, marks: readonly string[]): unknown {
  let inner = value;
  for (let depth = 0; depth < 3; depth += 1) {
    const record = inner;
    if (!isRecord(record) || marks.every((mark) => Object.hasOwn(record, mark))) return record;
    const key = wrappers.find((each) => isRecord(own(record, each)));
    if (key === undefined) return record;
    inner = own(record, key);
  }
  return inner;
}
