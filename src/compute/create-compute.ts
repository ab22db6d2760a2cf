import { type Log, silentLog } from "../log/log.ts";
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
  type Project,
  type Vm,
} from "./compute.ts";
import { type ComputeOptions, createHttp, type Http, type Good } from "./http.ts";
import * as z from "zod";

export type { ComputeOptions } from "./http.ts";

/** Throws UserError for a base URL that can't be used. */
export function createCompute(options: ComputeOptions): Compute {
  const http = createHttp(options);
  const callsOver = (by: Http): Compute => ({
    projects: createProjects(by, options.log ?? silentLog()),
    vms: createVms(by),
    onlyWhile: (mayGoOn) =>
      callsOver({ ...http, change: (call) => http.change({ ...call, mayGoOn }) }),
    close: () => http.close(),
  });
  return callsOver(http);
}

const perPageWanted = 100;
const maxProjects = 10_000;
const maxVmsOfProject = 100_000;

type Query = Readonly<Record<string, string>>;

function createProjects(http: Http, log: Log): Compute["projects"] {
  async function change(endpoint: Endpoint, id: string, options?: CallOptions, body?: object) {
    const good = await http.change({ endpoint, id, ...options, body });
    return acceptedProject(good, (project) => project.id === id);
  }

  return {
    async listAll(most = maxProjects, options) {
      const endpoint = endpoints.listProjects;
      const read = async (query: Query) =>
        parsePage(
          await http.read({ endpoint, query, list: true, ...options }),
          "projects",
          projectSchema,
        );
      let size: Query = { per_page: String(perPageWanted) };
      const first = await read({ page: "1", ...size }).catch((error: unknown) => {
        // The bounds of per_page aren't documented: if ours is refused, the service's default is used
        if (!(error instanceof ComputeError) || (error.status !== 400 && error.status !== 422))
          throw error;
        size = {};
        return read(size);
      });
      return allPages(read, first, { endpoint, size, most, log });
    },

    async get(projectId, options) {
      const good = await http.read({ endpoint: endpoints.getProject, id: projectId, ...options });
      return recordOf(good, projectSchema, ["id", "status"], ["id", projectId]);
    },

    async vms(projectId, options) {
      const endpoint = endpoints.listVms;
      const call = { endpoint, id: projectId, ...options, list: true };
      const read = async (query: Query) => parseVms(await http.read({ ...call, query }), projectId);
      const first = await read({});
      const { items, ...pages } = first;
      // Whether this list has pages isn't documented: it does when it says so.
      if (Object.values(pages).every((said) => said === undefined)) return items;
      const { perPage } = pages;
      const size: Query = perPage === undefined ? {} : { per_page: String(perPage) };
      return allPages(read, first, { endpoint, size, most: maxVmsOfProject, log });
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
      const good = await http.read({ endpoint: endpoints.getVm, id: vmId, ...options });
      return recordOf(good, vmSchema, ["id", "status"], ["id", vmId]);
    },

    async metrics(vmId, period, options) {
      const call = { endpoint: endpoints.vmMetrics, id: vmId, ...options, query: { period } };
      return recordOf(await http.read(call), metricsSchema, ["cpu_usage"], ["vm_id", vmId]);
    },

    async attestation(vmId, options) {
      const good = await http.read({ endpoint: endpoints.vmAttestation, id: vmId, ...options });
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

/** An answer that lacks what it must have. `field` is a path like `vms[3].status`. */
function unexpected({ endpoint, status }: Good, field: string, problem: string): ComputeError {
  const message = `${describeFailure(endpoint, "unexpected", "answer", status)}: ${field} ${problem}`;
  return new ComputeError("unexpected", endpoint, message, { reason: "answer", status });
}

/** The JSON of a whole answer, or ComputeError `unexpected` when it is none. */
function jsonOf(good: Good): unknown {
  if (typeof good.body !== "string") return good.body.json;
  throw unexpected(good, "the body", good.body === "empty" ? "is empty" : "is not JSON");
}

/** The first problem is named by its field, never by its value. */
function check<T>(good: Good, schema: z.ZodType<T>, value: unknown, at = ""): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [key] = parsed.error.issues[0]?.path ?? [];
  if (key === undefined) throw unexpected(good, at || "the record", "has the wrong form");
  const field = wireName(String(key));
  const isMissing = (own(value, field) ?? undefined) === undefined;
  const problem = isMissing ? "is missing" : "has the wrong form";
  throw unexpected(good, at === "" ? field : `${at}.${field}`, problem);
}

const wrappers = "vm project console session metrics attestation data result".split(" ");

/** The record inside `{vm: …}`, `{data: {project: …}}` and the like; a value that has one of `marks` is the record. */
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
 * A record, which the fields `marks` tell from its wrapper. One that names another VM or project than was asked for, by the
 * field `idName`, says nothing of that one, however whole it is. What names none passes.
 */
function recordOf<T>(
  good: Good,
  schema: z.ZodType<T>,
  marks: readonly string[],
  [idName, id]: readonly [idName: string, id: string],
): T {
  const record = unwrap(jsonOf(good), marks);
  const checked = check(good, schema, record);
  checkAbout(good, idName, own(record, idName), id);
  return checked;
}

function checkAbout(good: Good, idName: string, told: unknown, id: string): void {
  const named = idText(told);
  if (named !== undefined && named !== id) throw unexpected(good, idName, "is that of another one");
}

/**
 * Where an accepted change's answer may hold a record: `{vm: …}`, `{data: {vm: …}}`, `{data: …}`, or the body itself.
 * The form isn't documented and the service accepted, so nothing here fails; a task looks much like a record, so only the
 * record that the call was about counts.
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

/** A new project has no ID yet: it is recognized by the requested type and name. */
function acceptedProject(good: Good, isIt: (project: Project) => boolean): Accepted {
  const project = candidates(good, "project")
    .map((each) => projectSchema.safeParse(each).data)
    .find((each) => each !== undefined && isIt(each));
  return { status: good.status, ...(project ? { project } : {}) };
}

/**
 * An ID in the answer is the only proof of a snapshot. A bare `{id}` may be a task's, the VM's, or that of a call: it counts
 * when the record has the snapshot's name, or was created (200, 201) and holds only what a snapshot has.
 */
function acceptedSnapshot(good: Good, vmId: string, name: string): Accepted {
  const snapshotId = candidates(good, "snapshot")
    .map((each) => snapshotIdIn(each, vmId, name, good.status))
    .find((id) => id !== undefined);
  const told = snapshotId ?? snapshotText(good);
  return { ...acceptedVm(good, vmId), ...(told === undefined ? {} : { snapshotId: told }) };
}

/** A record with anything else is not surely a snapshot. */
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

/** `{snapshot: "snap-1"}`. */
function snapshotText(good: Good): string | undefined {
  const json = typeof good.body === "string" ? undefined : good.body.json;
  return idText(own(json, "snapshot")) ?? idText(own(own(json, "data"), "snapshot"));
}

function idText(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

interface Page<T> {
  items: T[];
  total: number | undefined;
  page: number | undefined;
  perPage: number | undefined;
  /** Whether the service says that there are more. */
  more: boolean | undefined;
}

/** A list in any of its forms: an array, or an object with the array under `key`, `data`, `items` or `results`. */
function parsePage<T>(good: Good, key: string, schema: z.ZodType<T>): Page<T> {
  const json = jsonOf(good);
  const list = findList(json, key);
  if (!list) throw unexpected(good, key, "is missing");
  return {
    items: list.map((each, index) => check(good, schema, each, `${key}[${index}]`)),
    ...paging(json),
  };
}

/** A page of the VMs of one project, which they may omit. */
function parseVms(good: Good, projectId: string): Page<Vm> {
  const page = parsePage(good, "vms", listedVmSchema);
  for (const vm of page.items) checkAbout(good, "project_id", vm.projectId, projectId);
  return { ...page, items: page.items.map((vm) => ({ ...vm, projectId })) };
}

function findList(json: unknown, key: string): unknown[] | undefined {
  if (Array.isArray(json)) return json;
  for (const name of [key, "data", "items", "results"]) {
    const value = own(json, name);
    if (Array.isArray(value)) return value;
    // An empty list is null in some languages' JSON.
    if (value === null && name === key) return [];
  }
  const inner = own(own(json, "data"), key);
  return Array.isArray(inner) ? inner : undefined;
}

function paging(json: unknown): Omit<Page<never>, "items"> {
  const places = [json, own(json, "pagination"), own(json, "meta"), own(json, "data")];
  const find = <T>(names: readonly string[], fits: (value: unknown) => value is T) =>
    places.flatMap((place) => names.map((name) => own(place, name))).find(fits);
  const next = find(["next_page"], (value) => value !== undefined);
  const says = next === undefined ? undefined : next !== null && next !== false && next !== "";
  return {
    total: find(["total", "total_count"], isCount),
    page: find(["page"], isCount),
    perPage: find(["per_page", "page_size"], isCount) || undefined,
    more: find(["has_more"], (value) => typeof value === "boolean") ?? says,
  };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

/** Pages read concurrently once their number is known. */
const atOnce = 8;

/**
 * Reads all pages, at most `most` records, each once. The service may cap per_page, omit `total`, miscount, or ignore
 * `page` and resend the first one: a page with nothing new is the last. Fewer records than announced are a line of the log.
 */
async function allPages<T extends { id: string }>(
  read: (query: Query) => Promise<Page<T>>,
  first: Page<T>,
  { endpoint, size, most, log }: { endpoint: Endpoint; size: Query; most: number; log: Log },
): Promise<T[]> {
  const total = Math.min(first.total ?? Number.POSITIVE_INFINITY, most);
  const seen = new Map(first.items.map((item) => [item.id, item]));
  let last = first;
  let next = 2;
  let isNew = seen.size > 0;
  while (isNew && seen.size < total && !isLast(last)) {
    // The first page's real length is the page size, whatever was requested.
    const left =
      first.total === undefined ? 1 : Math.ceil((total - seen.size) / first.items.length);
    const wave = Array.from({ length: Math.min(left, atOnce) }, (_, offset) => next + offset);
    const pages = await Promise.all(wave.map((page) => read({ page: String(page), ...size })));
    next += wave.length;
    const before = seen.size;
    for (const item of pages.flatMap((page) => page.items)) seen.set(item.id, item);
    isNew = seen.size > before;
    last = pages.at(-1) ?? last;
  }
  if (first.total !== undefined && seen.size < total)
    log.warn("compute.list-incomplete", { endpoint });
  return [...seen.values()].slice(0, most);
}

function isLast(page: Page<unknown>): boolean {
  if (page.items.length === 0) return true;
  if (page.more !== undefined) return !page.more;
  return page.total === undefined && page.perPage !== undefined && page.items.length < page.perPage;
}
