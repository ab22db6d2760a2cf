import { parseJson } from "../text/parse-json.ts";
import type { ComputeErrorReason } from "./errors.ts";
import { plain } from "../messages/text.ts";
import * as z from "zod";
import type { AttestationReport, ConsoleSession, Metrics, Project, Vm } from "./compute.ts";

export interface Answer {
  status: number;
  /** Lower case, without parameters; empty when there is none. */
  contentType: string;
  retryAfter: string | undefined;
  /** The service's clock, as it says. */
  date?: string | undefined;
  text: string;
  /** The status arrived, the body did not arrive whole. */
  flaw?: ComputeErrorReason | undefined;
}

/** `broken-off`: JSON that was cut off in transit. */
export type Body = { json: unknown } | "empty" | "broken-off" | "not-json";

export function parseBody(answer: Answer): Body {
  const text = answer.text.trim();
  if (text === "") return "empty";
  const json = parseJson(text);
  if (json !== undefined) return { json };
  const saysJson = answer.contentType === "" || /[/+]json$/.test(answer.contentType);
  return saysJson && endsInside(text) ? "broken-off" : "not-json";
}

/** A page is of something in between, a proxy or a sign-in: whatever its status, the service didn't answer. */
export function isForeign({ contentType, text, flaw }: Answer): boolean {
  if (/^\s*</.test(text)) return true;
  if (!/^(text\/html|application\/xhtml\+xml)$/.test(contentType)) return false;
  return flaw !== undefined || (text.trim() !== "" && parseJson(text) === undefined);
}

/** The text starts a JSON object, array or string that is never closed. */
function endsInside(text: string): boolean {
  let depth = 0;
  let inString = false;
  if (!/^["[{]/.test(text)) return false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === "\\") at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
  }
  return inString || depth > 0;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own property: `__proto__` and `constructor` from the wire are names like any other. */
export function own(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/**
 * The service's own words in a refusal: `{error}`, `{error: {message}}`, `{message}`, `{detail}`, `{errors: […]}`,
 * problem+json (RFC 9457), or plain text; never HTML. One line, at most 300 characters, without `secret`. Untrusted.
 */
export function serviceMessage(answer: Answer, secret: string): string | undefined {
  const body = parseBody(answer);
  const isText = answer.contentType === "" || answer.contentType === "text/plain";
  const words =
    typeof body === "string" ? (isText ? answer.text : undefined) : wordsIn(body.json, 0);
  if (words === undefined || looksLikeHtml(words)) return undefined;
  const clean = plain(
    words
      .slice(0, 2000)
      .replaceAll(secret, "…")
      .replaceAll(/\bBearer\s+\S+/gi, "Bearer …"),
    300,
  );
  return clean === "" ? undefined : clean;
}

function looksLikeHtml(text: string): boolean {
  return /^\s*<|<(html|body|head|script|style|div|p|h1|title|br)\b/i.test(text);
}

const keys = "message error_description detail error title msg reason description errors".split(
  " ",
);

/** The depth bounds the work that a hostile answer can cause. */
function wordsIn(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > 3) return undefined;
  if (Array.isArray(value)) {
    const words = value.slice(0, 5).map((each: unknown) => withField(each, depth + 1));
    return words.filter((each) => each !== undefined).join("; ") || undefined;
  }
  if (!isRecord(value)) return undefined;
  for (const key of keys) {
    const words = wordsIn(own(value, key), depth + 1);
    if (words !== undefined) return words;
  }
  return fieldErrors(value);
}

/** `{field: "cpu", message: "must be positive"}` reads as "cpu: must be positive". */
function withField(entry: unknown, depth: number): string | undefined {
  const words = wordsIn(entry, depth);
  const field = own(entry, "field") ?? own(entry, "path") ?? own(entry, "param");
  return words !== undefined && typeof field === "string" ? `${field}: ${words}` : words;
}

/** `{cpu: ["must be positive"]}`, the way of several frameworks. */
function fieldErrors(value: Record<string, unknown>): string | undefined {
  const words: string[] = [];
  for (const [field, each] of Object.entries(value).slice(0, 5)) {
    const first: unknown = Array.isArray(each) ? each[0] : undefined;
    if (typeof first === "string") words.push(`${field}: ${first}`);
  }
  return words.join("; ") || undefined;
}

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

const specs = maybe(z.object({ cpu: number, memory: number, disk: number }).transform(ours));

const vmFields = z.object({
  id,
  name: text,
  status,
  region: text,
  specs,
  ip_address: text,
  created_at: text,
  updated_at: text,
  attestation: maybe(z.object({ enabled: maybe(z.boolean()), measurement: text }).transform(ours)),
});

export const vmSchema = vmFields.extend({ project_id: id }).transform((vm): Vm => named(vm));

/** A project's list of VMs may omit the project. */
export type ListedVm = Omit<Vm, "projectId"> & { projectId?: string };

export const listedVmSchema = vmFields
  .extend({ project_id: maybe(id) })
  .transform((vm): ListedVm => named(vm));

export const projectSchema = z
  .object({
    id,
    name: text,
    type: z.string().min(1),
    status,
    region: text,
    created_at: text,
    updated_at: text,
    specs,
  })
  .transform((project): Project => named(project));

const sample = z.object({ timestamp: z.string(), value: z.number() });
const samples = z
  .array(z.unknown())
  .catch([])
  .transform((all) =>
    all.map((each) => sample.safeParse(each).data).filter((each) => each !== undefined),
  );

export const metricsSchema = z
  .object({ cpu_usage: samples, memory_usage: samples, disk_usage: number })
  .transform((metrics): Metrics => ours(metrics));

const platform = z.object({ vendor: text, model: text, firmware_version: text }).transform(ours);

export const attestationSchema = z
  .object({
    report: text,
    measurement: text,
    verified: maybe(z.boolean()),
    timestamp: text,
    platform: maybe(platform),
  })
  .transform((report): AttestationReport => ours(report));

/** Secure WebSocket only: the address carries a token. */
export const consoleSchema = z
  .object({
    url: z.string().refine((url) => URL.parse(url)?.protocol === "wss:"),
    expires_at: text,
  })
  .transform((session): ConsoleSession => ours(session));

const wrappers = "vm project console session metrics attestation data result".split(" ");

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
