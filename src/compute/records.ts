import * as z from "zod";

/** Null or the wrong type counts as missing. Unknown enum values stay; a record without a name goes by its ID. */
const maybe = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined);
const text = maybe(z.string());
const number = maybe(z.number());
const id = z.union([z.string().min(1), z.number().transform(String)]);
const status = z.string().min(1);

/** Names in these records have one underscore at most. */
type OurName<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Tail>}` : K;
type Missing<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];
type Ours<T> = { [K in Exclude<keyof T, Missing<T>> as OurName<K>]: T[K] } & {
  [K in Missing<T> as OurName<K>]?: Exclude<T[K], undefined>;
};

/** The record under our names, `createdAt` for `created_at`. What is undefined is left out, so that "missing" has one form. */
function ours<T extends object>(record: T): Ours<T> {
  const fields = Object.entries(record).filter(([, value]) => value !== undefined);
  const ourName = (name: string) => name.replace(/_./, (pair) => pair.slice(1).toUpperCase());
  return Object.fromEntries(fields.map(([name, value]) => [ourName(name), value])) as Ours<T>;
}

function named<T extends { id: string; name?: string | undefined }>(record: T) {
  return ours({ ...record, name: record.name ?? record.id });
}

/** Units are not documented by the service: numbers are shown as they come. */
const specs = z.object({ cpu: number, memory: number, disk: number }).transform(ours);
export type Specs = z.infer<typeof specs>;

const vmFields = z.object({
  id,
  name: text,
  status,
  region: text,
  specs: maybe(specs),
  ip_address: text,
  created_at: text,
  /** Not documented; a mark of change where present. */
  updated_at: text,
  attestation: maybe(z.object({ enabled: maybe(z.boolean()), measurement: text }).transform(ours)),
});

export const vmSchema = vmFields.extend({ project_id: id }).transform((vm) => named(vm));
export type Vm = z.infer<typeof vmSchema>;

/** A project's list of VMs may omit the project. */
export const listedVmSchema = vmFields
  .extend({ project_id: maybe(id) })
  .transform((vm) => named(vm));

export const projectSchema = z
  .object({
    id,
    name: text,
    type: z.string().min(1),
    status,
    region: text,
    created_at: text,
    updated_at: text,
    specs: maybe(specs),
  })
  .transform((project) => named(project));
export type Project = z.infer<typeof projectSchema>;

const sample = z.object({ timestamp: z.string(), value: z.number() });
const samples = z
  .array(z.unknown())
  .catch([])
  .transform((all) =>
    all.map((each) => sample.safeParse(each).data).filter((each) => each !== undefined),
  );

export const metricsSchema = z
  .object({ cpu_usage: samples, memory_usage: samples, disk_usage: number })
  .transform(ours);
export type Metrics = z.infer<typeof metricsSchema>;

const platform = z.object({ vendor: text, model: text, firmware_version: text }).transform(ours);

export const attestationSchema = z
  .object({
    /** Base64. */
    report: text,
    measurement: text,
    verified: maybe(z.boolean()),
    timestamp: text,
    platform: maybe(platform),
  })
  .transform(ours);
export type AttestationReport = z.infer<typeof attestationSchema>;

/** A secret, never stored or logged: the address carries its own token. Secure WebSocket only. */
export const consoleSchema = z
  .object({
    url: z.string().refine((url) => URL.parse(url)?.protocol === "wss:"),
    expires_at: text,
  })
  .transform(ours);
export type ConsoleSession = z.infer<typeof consoleSchema>;
