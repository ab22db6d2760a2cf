import { hash } from "node:crypto";
import { acceptedNewProject, acceptedProject } from "./accepted.ts";
import { check, jsonOf } from "./answer.ts";
import type {
  Compute,
  NewProject,
  Project,
  ProjectFilter,
  Specs,
  CallOptions,
  Vm,
} from "./compute.ts";
import { endpoints } from "./endpoints.ts";
import { ComputeError } from "./errors.ts";
import type { Good, Http } from "./http.ts";
import { collectPages, parsePage, type Page } from "./pages.ts";
import { listedVmSchema, projectSchema, unwrap, type ListedVm } from "./schemas.ts";

/** Asked for when all pages are wanted; the service may give fewer. */
const perPageWanted = 100;
const mostProjects = 10_000;
const mostVmsOfProject = 100_000;

export function createProjects(http: Http, log: (event: object) => void): Compute["projects"] {
  async function readProjects(filter: ProjectFilter, options: CallOptions): Promise<Page<Project>> {
    const { type, status, page, perPage } = filter;
    const endpoint = endpoints.listProjects;
    const query = { type, status, page, per_page: perPage };
    return parsePage(
      endpoint,
      await http.read({ endpoint, query, list: true, ...options }),
      "projects",
      projectSchema,
    );
  }

  /** The bounds of per_page aren't documented: a service that refuses ours is asked for its own. */
  async function readFirst(
    filter: ProjectFilter,
    options: CallOptions,
  ): Promise<[Page<Project>, number | undefined]> {
    try {
      return [
        await readProjects({ ...filter, page: 1, perPage: perPageWanted }, options),
        perPageWanted,
      ];
    } catch (error) {
      if (!(error instanceof ComputeError) || (error.status !== 400 && error.status !== 422))
        throw error;
      return [await readProjects(filter, options), undefined];
    }
  }

  function warnIncomplete(endpoint: string, complete: boolean): void {
    if (!complete) log({ event: "compute.list-incomplete", endpoint });
  }

  const vmList = (projectId: string) => ({
    endpoint: endpoints.listVms,
    ids: { project_id: projectId },
    list: true,
  });
  const parseVms = (good: Good) => parsePage(endpoints.listVms, good, "vms", listedVmSchema);

  async function readVms(
    projectId: string,
    query: Record<string, number>,
    options: CallOptions,
  ): Promise<Page<ListedVm>> {
    return parseVms(await http.read({ ...vmList(projectId), query, ...options }));
  }

  async function followVms(
    projectId: string,
    first: Page<ListedVm>,
    options: CallOptions,
  ): Promise<Vm[]> {
    const inProject = (vm: ListedVm): Vm => ({ ...vm, projectId: vm.projectId ?? projectId });
    // Whether this list has pages isn't documented: it has when it says so.
    if (!isPaged(first)) return first.items.map(inProject);
    const size = first.perPage === undefined ? {} : { per_page: first.perPage };
    const { items, complete } = await collectPages(
      (page) => readVms(projectId, { page, ...size }, options),
      first,
      mostVmsOfProject,
    );
    warnIncomplete(endpoints.listVms, complete);
    return items.map(inProject);
  }

  return {
    list: async (filter = {}, options = {}) => {
      const { items, total, page, perPage } = await readProjects(filter, options);
      return {
        projects: items,
        ...(total === undefined ? {} : { total }),
        ...(page === undefined ? {} : { page }),
        ...(perPage === undefined ? {} : { perPage }),
      };
    },

    listAll: async (filter = {}, most = mostProjects, { onPage, ...options } = {}) => {
      const [first, perPage] = await readFirst(filter, options);
      const size = perPage === undefined ? {} : { perPage };
      const { items, complete } = await collectPages(
        (page) => readProjects({ ...filter, page, ...size }, options),
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
      return check(
        endpoint,
        good.answer.status,
        projectSchema,
        unwrap(jsonOf(endpoint, good), ["id", "status"]),
      );
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
      const first = parseVms(good);
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

    delete: async (projectId, options = {}) =>
      acceptedProject(
        await http.change({
          endpoint: endpoints.deleteProject,
          ids: { project_id: projectId },
          ...options,
        }),
        projectId,
      ),
  };
}

function isPaged(page: Page<unknown>): boolean {
  return (
    page.total !== undefined ||
    page.page !== undefined ||
    page.perPage !== undefined ||
    page.more !== undefined
  );
}

/** Only the fields the service knows; undefined ones fall away in JSON. */
export function toSpecs(specs: Specs): object {
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
