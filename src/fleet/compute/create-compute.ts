import { type Log, silentLog } from "../../log/log.ts";
import {
  type CallOptions,
  checkSnapshotId,
  type Compute,
  type Endpoint,
  endpoints,
  type NewProject,
  ComputeError,
  attestationSchema,
  consoleSchema,
  metricsSchema,
  projectSchema,
  vmSchema,
  type Accepted,
  describeFailure,
  isRecord,
  listedVmSchema,
  own,
  wireName,
  type LeftOut,
  unreadable,
  type Project,
  type Vm,
} from "./compute.ts";
import { type ComputeOptions, createHttp, type Http, type Good } from "./http.ts";
import { type Paging, type Query, readPaging } from "./paging.ts";
import * as z from "zod";

export type { ComputeOptions } from "./http.ts";

/** Throws UserError for a base URL that can't be used. */
export function createCompute(options: ComputeOptions): Compute {
  const http = createHttp(options);
  const callsOver = (client: Http): Compute => ({
    projects: createProjects(client, options.log ?? silentLog()),
    vms: createVms(client),
    onlyWhile: (mayGoOn) =>
      callsOver({ ...http, change: (call) => http.change({ ...call, mayGoOn }) }),
    close: () => http.close(),
  });
  return callsOver(http);
}

const perPageWanted = 100;
const maxProjects = 10_000;
const maxVmsOfProject = 100_000;

function createProjects(http: Http, log: Log): Compute["projects"] {
  async function change(endpoint: Endpoint, id: string, options?: CallOptions, body?: object) {
    const good = await http.change({ endpoint, id, ...options, body });
    return acceptedProject(good, (project) => project.id === id);
  }

  return {
    async listAll(most = maxProjects, options) {
      const endpoint = endpoints.listProjects;
      const readPage = async (query: Query) =>
        parsePage(
          await http.readWithRetries({ endpoint, query, list: true, ...options }),
          "projects",
          projectSchema,
        );
      let size: Query = { per_page: String(perPageWanted) };
      const first = await readPage({ page: "1", ...size }).catch((error: unknown) => {
        // The limits of per_page aren't documented. If this size is refused, the service's default
        // is used.
        if (!(error instanceof ComputeError) || (error.status !== 400 && error.status !== 422))
          throw error;
        size = {};
        return readPage(size);
      });
      const asked = size["per_page"] === undefined ? undefined : perPageWanted;
      return allPages(readPage, first, { endpoint, size, pageSize: asked, most, log, ...options });
    },

    async get(projectId, options) {
      const good = await http.readWithRetries({
        endpoint: endpoints.getProject,
        id: projectId,
        ...options,
      });
      return recordOf(good, projectSchema, ["id", "status"], ["id", projectId], options?.onGaps);
    },

    async vms(projectId, options) {
      const endpoint = endpoints.listVms;
      const call = { endpoint, id: projectId, ...options, list: true };
      const readPage = async (query: Query) =>
        parseVms(await http.readWithRetries({ ...call, query }), projectId);
      const first = await readPage({});
      const { total, page, perPage, more } = first;
      // Whether this list has pages isn't documented. It has if the answer mentions paging.
      const hasPages = [total, page, perPage, more].some((field) => field !== undefined);
      const size: Query = perPage === undefined ? {} : { per_page: String(perPage) };
      const most = maxVmsOfProject;
      return allPages(readPage, first, { endpoint, size, hasPages, most, log, ...options });
    },

    async create(input, options) {
      const endpoint = endpoints.createProject;
      const good = await http.change({ endpoint, body: toBody(input), ...options });
      return acceptedProject(good, ({ type, name }) => type === input.type && name === input.name);
    },

    update: (projectId, { name, specs }, options) =>
      change(endpoints.updateProject, projectId, options, { name, specs }),

    delete: (projectId, options) => change(endpoints.deleteProject, projectId, options),
  };
}

function toBody({ name, type, region, specs, gitConfig: git }: NewProject): object {
  const { url, branch, buildCommand: build_command, startCommand: start_command } = git ?? {};
  const git_config = git && { url, branch, build_command, start_command };
  return { name, type, region, specs, git_config };
}

function createVms(http: Http): Compute["vms"] {
  async function change(endpoint: Endpoint, vmId: string, options?: CallOptions, body?: object) {
    return acceptedVm(await http.change({ endpoint, id: vmId, ...options, body }), vmId);
  }

  return {
    async get(vmId, options) {
      const good = await http.readWithRetries({ endpoint: endpoints.getVm, id: vmId, ...options });
      return recordOf(good, vmSchema, ["id", "status"], ["id", vmId], options?.onGaps);
    },

    async metrics(vmId, period, options) {
      const call = { endpoint: endpoints.vmMetrics, id: vmId, ...options, query: { period } };
      return recordOf(
        await http.readWithRetries(call),
        metricsSchema,
        ["cpu_usage"],
        ["vm_id", vmId],
      );
    },

    async attestation(vmId, options) {
      const good = await http.readWithRetries({
        endpoint: endpoints.vmAttestation,
        id: vmId,
        ...options,
      });
      return recordOf(good, attestationSchema, ["measurement"], ["vm_id", vmId]);
    },

    start: (vmId, options) => change(endpoints.startVm, vmId, options),
    stop: (vmId, options) => change(endpoints.stopVm, vmId, options),
    restart: (vmId, options) => change(endpoints.restartVm, vmId, options),
    resize: (vmId, specs, options) => change(endpoints.resizeVm, vmId, options, { specs }),

    async snapshot(vmId, name, options) {
      const call = { endpoint: endpoints.takeSnapshot, id: vmId, ...options, body: { name } };
      return acceptedSnapshot(await http.change(call), vmId, name);
    },

    restore: async (vmId, snapshotId, options) =>
      change(endpoints.restoreVm, vmId, options, { snapshot_id: checkSnapshotId(snapshotId) }),

    async console(vmId, options) {
      const good = await http.change({ endpoint: endpoints.openConsole, id: vmId, ...options });
      return recordOf(good, consoleSchema, ["url"], ["vm_id", vmId]);
    },
  };
}

/** The error for an answer that lacks a required part. `field` is a path like `vms[3].status`. */
function unexpected(good: Good, field: string, problem: string): ComputeError {
  const { endpoint, status, complaint } = good;
  const reason = complaint ? "says-failure" : "answer";
  const message = `${describeFailure(endpoint, "unexpected", reason, status)}: ${field} ${problem}`;
  const serviceMessage = complaint?.message;
  return new ComputeError("unexpected", endpoint, message, { reason, status, serviceMessage });
}

/** The JSON of an answer. Throws ComputeError `unexpected` when it isn't JSON. */
function jsonOf(good: Good): unknown {
  if (typeof good.body !== "string") return good.body.json;
  throw unexpected(good, "the body", good.body === "empty" ? "is empty" : "is not JSON");
}

/**
 * Parses a value by its schema. Throws ComputeError `unexpected`, which names the first wrong field
 * but never its value.
 */
function check<T>(good: Good, schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [field, problem] = flawOf(parsed.error, value);
  throw unexpected(good, field ?? "the record", problem);
}

function flawOf(
  error: z.ZodError,
  value: unknown,
): readonly [field: string | undefined, problem: string] {
  const [key] = error.issues[0]?.path ?? [];
  if (key === undefined) return [undefined, "has the wrong form"];
  const field = wireName(String(key));
  const isMissing = (own(value, field) ?? undefined) === undefined;
  return [field, isMissing ? "is missing" : "has the wrong form"];
}

const wrappers = "vm project console session metrics attestation data result".split(" ");

/**
 * The record inside `{vm: …}`, `{data: {project: …}}`, and the like. A value with one of the fields
 * in `marks` is the record itself.
 */
function unwrap(value: unknown, marks: readonly string[]): unknown {
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

/**
 * Parses an answer with one record. `marks` are fields that tell the record from its wrapper. A
 * record that names another VM or project in the field `idName` than the one in the request is
 * refused, however complete it is. A record without that field is accepted.
 */
function recordOf<T>(
  good: Good,
  schema: z.ZodType<T>,
  marks: readonly string[],
  [idName, id]: readonly [idName: string, id: string],
  onGaps?: CallOptions["onGaps"],
): T {
  const record = unwrap(jsonOf(good), marks);
  // Some records need no field, so the envelope of a failure would pass for an empty one.
  if (good.complaint && marks.every((mark) => own(record, mark) === undefined))
    throw unexpected(good, "the record", "is missing");
  const usable = onGaps ? readableFields(record, schema) : record;
  const checked = check(good, schema, usable);
  if (isOfAnother(record, idName, id)) throw unexpected(good, idName, ofAnother);
  if (usable !== record || typeof own(record, "name") !== "string")
    onGaps?.({ leftOut: [], marked: [id], isCut: false });
  return checked;
}

const ofAnother = "is that of another one";

function isOfAnother(record: unknown, idName: string, id: string): boolean {
  const named = idText(own(record, idName));
  return named !== undefined && named !== id;
}

/**
 * The places where the answer to an accepted change may have a record: `{vm: …}`, `{data: {vm:
 * …}}`, `{data: …}`, or the body itself. The form isn't documented and the service has accepted, so
 * nothing here fails. A task looks much like a record, so callers must check that the record is the
 * one that the call was about.
 */
function candidates(good: Good, key: string): unknown[] {
  const json = typeof good.body === "string" ? undefined : good.body.json;
  const data = own(json, "data");
  return [own(json, key), own(data, key), data, json].filter(isRecord);
}

function acceptedVm(good: Good, vmId: string): Accepted {
  const vm = candidates(good, "vm")
    .map((each) => vmSchema.safeParse(each).data)
    .find((each) => each?.id === vmId);
  return { status: good.status, ...(vm ? { vm } : {}) };
}

/**
 * The record in the answer to a change of a project. A new project has no ID yet, so it is
 * recognized by the requested type and name.
 */
function acceptedProject(good: Good, isIt: (project: Project) => boolean): Accepted {
  const project = candidates(good, "project")
    .map((each) => projectSchema.safeParse(each).data)
    .find((each) => each !== undefined && isIt(each));
  return { status: good.status, ...(project ? { project } : {}) };
}

/**
 * Finds the ID of a new snapshot, which is the only proof that it exists. A bare `{id}` may be the
 * ID of a task, of the VM, or of the call. It counts when the record has the snapshot's name, or
 * when the status is 200 or 201 and the record has only fields that a snapshot has.
 */
function acceptedSnapshot(good: Good, vmId: string, name: string): Accepted {
  const snapshotId = candidates(good, "snapshot")
    .map((each) => snapshotIdIn(each, vmId, name, good.status))
    .find((id) => id !== undefined);
  const snapshotRef = snapshotId ?? snapshotText(good);
  return {
    ...acceptedVm(good, vmId),
    ...(snapshotRef === undefined ? {} : { snapshotId: snapshotRef }),
  };
}

/** The fields of a snapshot. A record with any other field may be something else. */
const snapshotKeys = new Set(
  "id name vm_id status region size size_gb description created_at updated_at".split(" "),
);

function snapshotIdIn(
  record: unknown,
  vmId: string,
  name: string,
  status: number,
): string | undefined {
  const ofVm = idText(own(record, "vm_id"));
  if (ofVm !== undefined && ofVm !== vmId) return undefined;
  const clear = idText(own(record, "snapshot_id")) ?? idText(own(record, "snapshotId"));
  if (clear !== undefined) return clear;
  const id = idText(own(record, "id"));
  if (id === undefined || id === vmId) return undefined;
  if (own(record, "name") === name) return id;
  const isOther = !isRecord(record) || Object.keys(record).some((key) => !snapshotKeys.has(key));
  return isOther || status === 202 ? undefined : id;
}

/** Reads `{snapshot: "snap-1"}`. */
function snapshotText(good: Good): string | undefined {
  const json = typeof good.body === "string" ? undefined : good.body.json;
  return idText(own(json, "snapshot")) ?? idText(own(own(json, "data"), "snapshot"));
}

function idText(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

interface Page<T> extends Paging {
  /** The records that can be used, at least in part. */
  items: T[];
  /** How many records the answer has, usable or not. */
  length: number;
  leftOut: LeftOut[];
  /** The error of the first record that was left out. */
  error?: ComputeError | undefined;
  marked: string[];
  /** The service says that it could read only a part. */
  isPartial: boolean;
}

/**
 * Parses a list in any of its forms: an array, or an object with the array under `key`, `data`,
 * `items`, or `results`. A broken record doesn't hide the others; it is marked or left out.
 */
function parsePage<T extends { id: string }>(
  good: Good,
  key: string,
  schema: z.ZodType<T>,
  ofProject?: string,
): Page<T> {
  const json = jsonOf(good);
  const list = findList(json, key);
  if (!list) throw unexpected(good, key, "is missing");
  const page: Page<T> = {
    ...readPaging(json, good.pagingHeaders),
    items: [],
    length: list.length,
    leftOut: [],
    marked: [],
    isPartial: good.complaint !== undefined,
  };
  for (const [index, value] of list.entries()) {
    const rawName = own(value, "name");
    const name = typeof rawName === "string" && rawName !== "" ? rawName : undefined;
    const fields = readableFields(value, schema);
    const parsed = schema.safeParse(fields);
    const isOther = ofProject !== undefined && isOfAnother(value, "project_id", ofProject);
    if (parsed.success && !isOther) {
      page.items.push(parsed.data);
      if (fields !== value || name === undefined) page.marked.push(parsed.data.id);
      continue;
    }
    const [field, problem] = parsed.success
      ? ["project_id", ofAnother]
      : flawOf(parsed.error, value);
    page.leftOut.push({ name, problem: `${field ?? "the record"} ${problem}` });
    const at = `${key}[${index}]`;
    page.error ??= unexpected(good, field === undefined ? at : `${at}.${field}`, problem);
  }
  return page;
}

/** The record with `unreadable` in place of a status or type that can't be read. */
function readableFields(value: unknown, schema: z.ZodType): unknown {
  if (!isRecord(value)) return value;
  const fields = schema === projectSchema ? ["status", "type"] : ["status"];
  const broken = fields.filter((field) => typeof value[field] !== "string" || value[field] === "");
  if (broken.length === 0) return value;
  return { ...value, ...Object.fromEntries(broken.map((field) => [field, unreadable])) };
}

/** Parses a page of the VMs of one project. Its records may omit the project. */
function parseVms(good: Good, projectId: string): Page<Vm> {
  const page = parsePage(good, "vms", listedVmSchema, projectId);
  return { ...page, items: page.items.map((vm) => ({ ...vm, projectId })) };
}

function findList(json: unknown, key: string): unknown[] | undefined {
  if (Array.isArray(json)) return json;
  for (const name of [key, "data", "items", "results"]) {
    const value = own(json, name);
    if (Array.isArray(value)) return value;
    // In some languages, the JSON of an empty list is null.
    if (value === null && name === key) return [];
  }
  const inner = own(own(json, "data"), key);
  return Array.isArray(inner) ? inner : undefined;
}

/** Stands for a page that doesn't exist, and ends a list as an empty page does. */
const pastTheLast: Page<never> = {
  items: [],
  length: 0,
  leftOut: [],
  marked: [],
  isPartial: false,
  ...readPaging(undefined, {}),
};

/** Whether a page was refused because the list has ended. Services answer that in several ways. */
const isNoSuchPage = ({ kind, status }: ComputeError): boolean =>
  kind === "not-found" ||
  (kind === "refused" && (status === 400 || status === 416 || status === 422));

/** How many pages are read at once, once their number is known. */
const atOnce = 8;
/**
 * No service is known that has fewer records on a full page than this, whatever size is requested.
 */
const smallestPage = 10;

interface Listing extends Pick<CallOptions, "onGaps"> {
  endpoint: Endpoint;
  size: Query;
  /** The page size that was requested. */
  pageSize?: number | undefined;
  /** False when the answer doesn't mention paging and so is the whole list. */
  hasPages?: boolean;
  most: number;
  log: Log;
}

/**
 * Reads all pages, at most `most` records, each once. The service may limit per_page with or
 * without saying so, omit `total`, count only the current page in `total`, or ignore `page` and
 * return the first page again. Therefore a `total` that isn't larger than the page doesn't end the
 * list. What ends it is a page that isn't full, or one with nothing new. When there seem to be more
 * records than were read, that is reported as a gap.
 */
async function allPages<T extends { id: string }>(
  readPage: (query: Query) => Promise<Page<T>>,
  first: Page<T>,
  { endpoint, size, pageSize: asked, hasPages = true, most, log, onGaps }: Listing,
): Promise<T[]> {
  const seen = new Map<string, T>();
  const leftOut: LeftOut[] = [];
  const marked = new Set<string>();
  /**
   * The contents of pages without a usable record. They have no IDs by which a repeated page could
   * be recognized.
   */
  const brokenPages = new Set<string>();
  /** Adds a page. Returns whether it has anything that no earlier page had. */
  function take(page: Page<T>): boolean {
    const before = seen.size;
    for (const item of page.items) seen.set(item.id, item);
    const print = page.leftOut.map(({ name, problem }) => `${name}: ${problem}`).join("\n");
    const isNew =
      seen.size > before || (page.items.length === 0 && page.length > 0 && !brokenPages.has(print));
    if (page.items.length === 0) brokenPages.add(print);
    if (!isNew) return false;
    leftOut.push(...page.leftOut);
    for (const id of page.marked) marked.add(id);
    return true;
  }
  const counted = () => seen.size + leftOut.length;
  // A total that isn't larger than the page may count only the page. A round number may be a search
  // engine's limit. Neither is taken for the real total.
  const total = first.total ?? 0;
  const isTotal = total > first.length && total % 1_000 !== 0;
  const missing = () => Math.min(total, most) - counted();
  /** Whether another page may follow, by what the service says, or else by the page's size. */
  function mayGoOn(page: Page<T>): boolean {
    if (!hasPages || page.length === 0) return false;
    if (page.more !== undefined) return page.more;
    // A service that gives a mark for the next page gives none after the last.
    if (first.next) return false;
    if (missing() > 0) return true;
    if (isTotal && counted() === total) return false;
    if (page.perPage === undefined || (first.total !== undefined && total < first.length))
      return !(isTotal && page.length < first.length);
    // A service may repeat the requested size although its pages are smaller.
    const isRepeatedSize = page.perPage === asked && page.length >= smallestPage;
    return page.length >= (isRepeatedSize ? first.length : page.perPage);
  }

  async function readNext(query: Query): Promise<Page<T>> {
    try {
      return await readPage({ ...size, ...query });
    } catch (error) {
      if (error instanceof ComputeError && isNoSuchPage(error)) return pastTheLast;
      throw error;
    }
  }

  let last = first;
  let next = 2;
  let isNew = take(first);
  let { isPartial } = first;
  // Every page has something new, so a service that never ends its list is left after this many
  // pages.
  const mostPages = 2 * Math.ceil(most / Math.max(1, first.length)) + atOnce;
  while (isNew && seen.size < most && next <= mostPages && mayGoOn(last)) {
    // The first page's real length is the page size, whatever was requested.
    const pages = Math.max(1, Math.ceil(missing() / first.length));
    const wave: Query[] = last.next
      ? [last.next]
      : Array.from({ length: Math.min(pages, atOnce) }, (_, offset) => ({
          page: String(next + offset),
        }));
    const answers = await Promise.all(wave.map((query) => readNext(query)));
    next += wave.length;
    isNew = answers.map((page) => take(page)).includes(true);
    isPartial ||= answers.some((page) => page.isPartial);
    last = answers.find(({ length }) => length === 0) ?? answers.at(-1) ?? last;
  }

  if (seen.size === 0 && first.error) throw first.error;
  const isFull = last.perPage !== undefined && last.length >= last.perPage;
  const isRepeated = !isNew && (last.more === true || isFull);
  const isCut =
    seen.size < most &&
    (isPartial ||
      missing() > 0 ||
      (last.length > 0 && (isRepeated || (hasPages && next > mostPages))));
  if (isCut) log.warn("compute.list-incomplete", { endpoint });
  if (isCut || leftOut.length > 0 || marked.size > 0)
    onGaps?.({ leftOut, marked: [...marked], isCut });
  return [...seen.values()].slice(0, most);
}
