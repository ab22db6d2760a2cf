import { type Log, silentLog } from "../log/log.ts";
import {
  acceptedProject,
  acceptedSnapshot,
  acceptedVm,
  collectPages,
  type Page,
  parsePage,
  parseVms,
  recordOf,
} from "./answer.ts";
import {
  attestationSchema,
  consoleSchema,
  metricsSchema,
  projectSchema,
  vmSchema,
} from "./body.ts";
import {
  type Accepted,
  type CallOptions,
  checkSnapshotId,
  type Compute,
  type Endpoint,
  endpoints,
  type NewProject,
  type Project,
  type Specs,
} from "./compute.ts";
import { ComputeError } from "./errors.ts";
import { type ComputeOptions, createHttp, type Http } from "./http.ts";

export type { ComputeOptions } from "./http.ts";

/** Throws UserError for a base URL or key that can't be used. */
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

function createProjects(http: Http, log: Log): Compute["projects"] {
  async function readProjects(
    query: Record<string, number>,
    options: CallOptions,
  ): Promise<Page<Project>> {
    const endpoint = endpoints.listProjects;
    const good = await http.read({ endpoint, query, list: true, ...options });
    return parsePage(good, "projects", projectSchema);
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

  async function change(
    endpoint: Endpoint,
    projectId: string,
    options: CallOptions,
    body?: object,
  ): Promise<Accepted> {
    const call = { endpoint, ids: { project_id: projectId }, ...options };
    const good = await http.change(body === undefined ? call : { ...call, body });
    return acceptedProject(good, ({ id }) => id === projectId);
  }

  return {
    listAll: async (most = maxProjects, options = {}) => {
      const { first, size } = await readFirst(options);
      const { items, complete } = await collectPages(
        (page) => readProjects({ page, ...size }, options),
        first,
        most,
      );
      warnIncomplete(endpoints.listProjects, complete);
      return items;
    },

    get: async (projectId, options = {}) => {
      const endpoint = endpoints.getProject;
      const good = await http.read({ endpoint, ids: { project_id: projectId }, ...options });
      return recordOf(good, projectSchema, ["id", "status"], ["id", projectId]);
    },

    vms: async (projectId, options = {}) => {
      const endpoint = endpoints.listVms;
      const ids = { project_id: projectId };
      const read = async (query: Record<string, number>) =>
        parseVms(await http.read({ endpoint, ids, list: true, query, ...options }), projectId);
      const first = await read({});
      // Whether this list has pages isn't documented: it does when it says so.
      if (Object.keys(first).every((key) => key === "items")) return first.items;
      const size = first.perPage === undefined ? {} : { per_page: first.perPage };
      const { items, complete } = await collectPages(
        (page) => read({ page, ...size }),
        first,
        maxVmsOfProject,
      );
      warnIncomplete(endpoint, complete);
      return items;
    },

    create: async (input, options = {}) => {
      const endpoint = endpoints.createProject;
      const good = await http.change({ endpoint, body: toBody(input), ...options });
      return acceptedProject(good, ({ type, name }) => type === input.type && name === input.name);
    },

    update: async (projectId, { name, specs }, options = {}) =>
      change(endpoints.updateProject, projectId, options, { name, specs: specs && toSpecs(specs) }),

    delete: async (projectId, options = {}) => change(endpoints.deleteProject, projectId, options),
  };
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

function createVms(http: Http): Compute["vms"] {
  const about = (endpoint: Endpoint, vmId: string, options: CallOptions) => ({
    endpoint,
    ids: { vm_id: vmId },
    ...options,
  });

  async function change(
    endpoint: Endpoint,
    vmId: string,
    options: CallOptions,
    body?: object,
  ): Promise<Accepted> {
    const call = about(endpoint, vmId, options);
    return acceptedVm(await http.change(body === undefined ? call : { ...call, body }), vmId);
  }

  return {
    get: async (vmId, options = {}) => {
      const good = await http.read(about(endpoints.getVm, vmId, options));
      return recordOf(good, vmSchema, ["id", "status"], ["id", vmId]);
    },

    metrics: async (vmId, period, options = {}) => {
      const call = { ...about(endpoints.vmMetrics, vmId, options), query: { period } };
      return recordOf(await http.read(call), metricsSchema, ["cpu_usage"], ["vm_id", vmId]);
    },

    attestation: async (vmId, options = {}) => {
      const good = await http.read(about(endpoints.vmAttestation, vmId, options));
      return recordOf(good, attestationSchema, ["measurement"], ["vm_id", vmId]);
    },

    start: async (vmId, options = {}) => change(endpoints.startVm, vmId, options),
    stop: async (vmId, options = {}) => change(endpoints.stopVm, vmId, options),
    restart: async (vmId, options = {}) => change(endpoints.restartVm, vmId, options),
    resize: async (vmId, specs, options = {}) =>
      change(endpoints.resizeVm, vmId, options, { specs: toSpecs(specs) }),

    snapshot: async (vmId, name, options = {}) => {
      const call = { ...about(endpoints.takeSnapshot, vmId, options), body: { name } };
      return acceptedSnapshot(await http.change(call), vmId, name);
    },

    restore: async (vmId, snapshotId, options = {}) =>
      change(endpoints.restoreVm, vmId, options, { snapshot_id: checkSnapshotId(snapshotId) }),

    console: async (vmId, options = {}) => {
      const good = await http.change(about(endpoints.openConsole, vmId, options));
      return recordOf(good, consoleSchema, ["url"], ["vm_id", vmId]);
    },
  };
}
