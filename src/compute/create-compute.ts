import type { LookupFunction } from "node:net";
import { UserError } from "../errors.ts";
import { type Live, valueOf } from "../config/changing-file.ts";
import type { ComputeTls } from "../config/compute-tls.ts";
import { type Log, silentLog } from "../log/log.ts";
import {
  type Compute,
  type NewProject,
  type Project,
  type Specs,
  type CallOptions,
  type Vm,
  endpoints,
  type Accepted,
  checkSnapshotId,
  type Endpoint,
} from "./compute.ts";
import {
  type CallReport,
  createHttp,
  defaultDelays,
  type Http,
  type RetryDelays,
  type Good,
} from "./http.ts";
import { createConnector, parseBaseUrl } from "./reach.ts";
import { hash } from "node:crypto";
import {
  acceptedNewProject,
  acceptedProject,
  check,
  checkAbout,
  jsonOf,
  collectPages,
  parsePage,
  type Page,
  acceptedSnapshot,
  acceptedVm,
} from "./answer.ts";
import { ComputeError } from "./errors.ts";
import {
  listedVmSchema,
  projectSchema,
  unwrap,
  type ListedVm,
  attestationSchema,
  consoleSchema,
  metricsSchema,
  vmSchema,
} from "./body.ts";
import type * as z from "zod";

export interface ComputeOptions {
  /** `https://host[/prefix]`; http only for hosts that are loopback or private by name. */
  baseUrl: string;
  /** It may be replaced while the process runs. */
  apiKey: Live;
  /** Looks for a newer key now: before each change, and after a 401. */
  refreshKey?: () => void;
  /** For one try: connecting, sending, and the whole answer. */
  timeoutMs: number;
  /** Concurrent reads; default 32. Each change has its own connection. */
  connections?: number;
  /** Of a record; default 1 MiB. Lists may have 16 times as much. */
  maxResponseBytes?: number;
  /** Lets a public host name resolve to private addresses, or to these ranges; never to link-local ones (metadata services). */
  allowPrivate?: boolean | readonly string[];
  /** Read for each connection. */
  tls?: ComputeTls;
  /** The address of a proxy that tunnels (CONNECT). */
  proxy?: string | undefined;
  log?: Log;
  /** Called after each try. */
  onCall?: (call: CallReport) => void;
  retryDelays?: Partial<RetryDelays>;
  /** Stands in for DNS. */
  lookup?: LookupFunction;
}

/** Throws UserError for a base URL or key that can't be used. */
export function createCompute(options: ComputeOptions): Compute {
  const { timeoutMs, log = silentLog() } = options;
  // What HTTP allows in a header value, without spaces (RFC 6750 allows less).
  if (!/^[\x21-\x7e]+$/.test(valueOf(options.apiKey)))
    throw new UserError("The compute service's key is empty or has characters no key has");
  const base = parseBaseUrl(options.baseUrl, options.allowPrivate ?? false);
  const http = createHttp({
    base,
    apiKey: () => valueOf(options.apiKey),
    refreshKey: options.refreshKey ?? (() => undefined),
    timeoutMs,
    connections: options.connections ?? 32,
    maxResponseBytes: options.maxResponseBytes ?? 1024 * 1024,
    connect: createConnector({
      base,
      timeoutMs,
      tls: options.tls,
      proxy: options.proxy,
      lookup: options.lookup,
    }),
    delays: { ...defaultDelays, ...options.retryDelays },
    log,
    onCall: options.onCall ?? (() => {}),
  });
  const callsOver = (by: Http): Compute => ({
    projects: createProjects(by, log),
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

export function createProjects(http: Http, log: Log): Compute["projects"] {
  async function readProjects(
    query: Record<string, number>,
    options: CallOptions,
  ): Promise<Page<Project>> {
    const endpoint = endpoints.listProjects;
    const good = await http.read({ endpoint, query, list: true, ...options });
    return parsePage(endpoint, good, "projects", projectSchema);
  }

  /** The bounds of per_page aren't documented: if ours is refused, the service's default is used. */
  async function readFirst(
    options: CallOptions,
  ): Promise<{ first: Page<Project>; size: Record<string, number> }> {
    const size = { per_page: perPageWanted };
    try {
      return { first: await readProjects({ page: 1, ...size }, options), size };
    } catch (error) {
      if (!(error instanceof ComputeError) || (error.status !== 400 && error.status !== 422))
        throw error;
      return { first: await readProjects({}, options), size: {} };
    }
  }

  function warnIncomplete(endpoint: string, complete: boolean): void {
    if (!complete) log.warn("compute.list-incomplete", { endpoint });
  }

  const vmList = (projectId: string) => ({
    endpoint: endpoints.listVms,
    ids: { project_id: projectId },
    list: true,
  });
  const parseVms = (good: Good, projectId: string) => {
    const page = parsePage(endpoints.listVms, good, "vms", listedVmSchema);
    for (const vm of page.items)
      checkAbout(endpoints.listVms, good, { project_id: vm.projectId }, { project_id: projectId });
    return page;
  };

  async function readVms(
    projectId: string,
    query: Record<string, number>,
    options: CallOptions,
  ): Promise<Page<ListedVm>> {
    return parseVms(await http.read({ ...vmList(projectId), query, ...options }), projectId);
  }

  async function followVms(
    projectId: string,
    first: Page<ListedVm>,
    options: CallOptions,
  ): Promise<Vm[]> {
    const inProject = (vm: ListedVm): Vm => ({ ...vm, projectId: vm.projectId ?? projectId });
    // Whether this list has pages isn't documented: it does when it says so.
    if (!isPaged(first)) return first.items.map(inProject);
    const size = first.perPage === undefined ? {} : { per_page: first.perPage };
    const { items, complete } = await collectPages(
      (page) => readVms(projectId, { page, ...size }, options),
      first,
      maxVmsOfProject,
    );
    warnIncomplete(endpoints.listVms, complete);
    return items.map(inProject);
  }

  return {
    listAll: async (most = maxProjects, { onPage, ...options } = {}) => {
      const { first, size } = await readFirst(options);
      const { items, complete } = await collectPages(
        (page) => readProjects({ page, ...size }, options),
        first,
        most,
        onPage,
      );
      warnIncomplete(endpoints.listProjects, complete);
      return items;
    },

    get: async (projectId, options = {}) => {
      const endpoint = endpoints.getProject;
      const good = await http.read({ endpoint, ids: { project_id: projectId }, ...options });
      const record = unwrap(jsonOf(endpoint, good), ["id", "status"]);
      const project = check(endpoint, good.answer.status, projectSchema, record);
      checkAbout(endpoint, good, record, { id: projectId });
      return project;
    },

    vms: async (projectId, options = {}) => {
      const first = await readVms(projectId, {}, options);
      return followVms(projectId, first, options);
    },

    vmsUnless: async (mark, projectId, { onAnswer, ...options } = {}) => {
      let seen = "";
      const isSame = (text: string) => (seen = hash("sha256", text)) === mark;
      const good = await http.read({ ...vmList(projectId), isSame, onAnswer, ...options });
      if (good.body === "same") return "same";
      const first = parseVms(good, projectId);
      const vms = await followVms(projectId, first, options);
      // The first page says nothing of the others
      return isPaged(first) ? { vms } : { vms, mark: seen };
    },

    create: async (input, options = {}) => {
      const good = await http.change({
        endpoint: endpoints.createProject,
        body: toBody(input),
        ...options,
      });
      return acceptedNewProject(good, input);
    },

    update: async (projectId, change, options = {}) => {
      const body = { name: change.name, specs: change.specs && toSpecs(change.specs) };
      const good = await http.change({
        endpoint: endpoints.updateProject,
        ids: { project_id: projectId },
        body,
        ...options,
      });
      return acceptedProject(good, projectId);
    },

    delete: async (projectId, options = {}) => {
      const call = {
        endpoint: endpoints.deleteProject,
        ids: { project_id: projectId },
        ...options,
      };
      return acceptedProject(await http.change(call), projectId);
    },
  };
}

function isPaged(page: Page<unknown>): boolean {
  return Object.keys(page).some((key) => key !== "items");
}

/** Only the fields the service knows. */
function toSpecs(specs: Specs): object {
  return { cpu: specs.cpu, memory: specs.memory, disk: specs.disk };
}

function toBody(input: NewProject): object {
  const git = input.gitConfig;
  return {
    name: input.name,
    type: input.type,
    region: input.region,
    specs: input.specs && toSpecs(input.specs),
    git_config: git && {
      url: git.url,
      branch: git.branch,
      build_command: git.buildCommand,
      start_command: git.startCommand,
    },
  };
}

export function createVms(http: Http): Compute["vms"] {
  /** `marks` are the fields by which the record is known from its wrapper. */
  async function read<T>(
    endpoint: Endpoint,
    vmId: string,
    schema: z.ZodType<T>,
    marks: readonly string[],
    options: CallOptions,
    query: Record<string, string> = {},
  ): Promise<T> {
    const good = await http.read({ endpoint, ids: { vm_id: vmId }, query, ...options });
    const record = unwrap(jsonOf(endpoint, good), marks);
    const checked = check(endpoint, good.answer.status, schema, record);
    checkAbout(endpoint, good, record, marks.includes("id") ? { id: vmId } : { vm_id: vmId });
    return checked;
  }

  async function change(
    endpoint: Endpoint,
    vmId: string,
    options: CallOptions,
    body?: object,
  ): Promise<Accepted> {
    const call = { endpoint, ids: { vm_id: vmId }, ...options };
    return acceptedVm(await http.change(body === undefined ? call : { ...call, body }), vmId);
  }

  return {
    get: async (vmId, options = {}) =>
      read(endpoints.getVm, vmId, vmSchema, ["id", "status"], options),

    metrics: async (vmId, period, options = {}) =>
      read(endpoints.vmMetrics, vmId, metricsSchema, ["cpu_usage"], options, { period }),

    attestation: async (vmId, options = {}) =>
      read(endpoints.vmAttestation, vmId, attestationSchema, ["measurement"], options),

    start: async (vmId, options = {}) => change(endpoints.startVm, vmId, options),
    stop: async (vmId, options = {}) => change(endpoints.stopVm, vmId, options),
    restart: async (vmId, options = {}) => change(endpoints.restartVm, vmId, options),
    resize: async (vmId, specs, options = {}) =>
      change(endpoints.resizeVm, vmId, options, { specs: toSpecs(specs) }),

    snapshot: async (vmId, name, options = {}) => {
      const call = {
        endpoint: endpoints.takeSnapshot,
        ids: { vm_id: vmId },
        body: { name },
        ...options,
      };
      return acceptedSnapshot(await http.change(call), vmId, name);
    },

    restore: async (vmId, snapshotId, options = {}) =>
      change(endpoints.restoreVm, vmId, options, { snapshot_id: checkSnapshotId(snapshotId) }),

    console: async (vmId, options = {}) => {
      const endpoint = endpoints.openConsole;
      const good = await http.change({ endpoint, ids: { vm_id: vmId }, ...options });
      const record = unwrap(jsonOf(endpoint, good), ["url"]);
      checkAbout(endpoint, good, record, { vm_id: vmId });
      return check(endpoint, good.answer.status, consoleSchema, record);
    },
  };
}
