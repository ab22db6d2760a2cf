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
  type CallOptions,
  checkSnapshotId,
  type Compute,
  type Endpoint,
  endpoints,
  type NewProject,
} from "./compute.ts";
import { ComputeError } from "./errors.ts";
import { type ComputeOptions, createHttp, type Http } from "./http.ts";
import {
  attestationSchema,
  consoleSchema,
  metricsSchema,
  projectSchema,
  type Specs,
  vmSchema,
} from "./records.ts";

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

type Query = Readonly<Record<string, string>>;

function createProjects(http: Http, log: Log): Compute["projects"] {
  async function change(endpoint: Endpoint, id: string, options?: CallOptions, body?: object) {
    const good = await http.change({ endpoint, id, ...options, body });
    return acceptedProject(good, (project) => project.id === id);
  }

  async function allPages<T extends { id: string }>(
    endpoint: Endpoint,
    read: (query: Query) => Promise<Page<T>>,
    first: Page<T>,
    { size, most }: { size: Query; most: number },
  ): Promise<T[]> {
    const readPage = (page: number) => read({ page: String(page), ...size });
    const { items, complete } = await collectPages(readPage, first, most);
    if (!complete) log.warn("compute.list-incomplete", { endpoint });
    return items;
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
      return allPages(endpoint, read, first, { size, most });
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
      const { items, ...paging } = first;
      // Whether this list has pages isn't documented: it does when it says so.
      if (Object.values(paging).every((said) => said === undefined)) return items;
      const { perPage } = paging;
      const size: Query = perPage === undefined ? {} : { per_page: String(perPage) };
      return allPages(endpoint, read, first, { size, most: maxVmsOfProject });
    },

    async create(input, options) {
      const endpoint = endpoints.createProject;
      const good = await http.change({ endpoint, body: toBody(input), ...options });
      return acceptedProject(good, ({ type, name }) => type === input.type && name === input.name);
    },

    update: (projectId, { name, specs }, options) =>
      change(endpoints.updateProject, projectId, options, { name, specs: specs && toSpecs(specs) }),

    delete: (projectId, options) => change(endpoints.deleteProject, projectId, options),
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
    resize: (vmId, specs, options) =>
      change(endpoints.resizeVm, vmId, options, { specs: toSpecs(specs) }),

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
