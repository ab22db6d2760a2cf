import { randomBytes } from "node:crypto";
import {
  acceptedAnswer,
  type Answer,
  json,
  listAnswer,
  refusalAnswer,
  snapshotAnswer,
} from "./answers.ts";
import { attestationOf, metricsOf } from "./attestation.ts";
import {
  checkNewProject,
  checkProjectUpdate,
  checkSpecs,
  checkText,
  fieldsOf,
  projectTypes,
} from "./checks.ts";
import type { ProjectOperations } from "./project-operations.ts";
import {
  projectRecord,
  type SandboxProject,
  type SandboxVm,
  snapshotRecord,
  vmRecord,
  Refusal,
} from "./records.ts";
import type { VmOperations } from "./vm-operations.ts";
import type { Effect } from "./weather.ts";
import type { World } from "./world.ts";

export interface Asked {
  ids: readonly string[];
  query: URLSearchParams;
  body: unknown;
  effect: Effect;
}

export interface EndpointSettings {
  world: World;
  operations: VmOperations & ProjectOperations;
  perPage: number;
  mostPerPage: number;
  withUpdatedAt: boolean;
  consoleMs: number;
}

export interface SandboxEndpoint {
  method: string;
  /** Path template; `{…}` stands for an id. */
  route: string;
  /** What it does and answers, or why not. */
  handle(asked: Asked): Answer | Refusal;
}

const notFound = (what: string) => new Refusal(404, "not_found", `no such ${what}`);

/** All endpoints of the compute service. */
export function createEndpoints(settings: EndpointSettings): SandboxEndpoint[] {
  const { world, operations } = settings;
  let flips = 0;

  /** A record as the weather lets it be seen. */
  function show(record: Record<string, unknown>, effect: Effect): Record<string, unknown> {
    const { spoils = {} } = effect;
    const spoiled = spoils[String(record["id"])] ?? spoils[String(record["name"])] ?? {};
    const shown = { ...record, ...effect.extra, ...spoiled.set };
    const { shownStatus } = effect;
    if (shownStatus !== undefined) {
      flips += 1;
      shown["status"] =
        typeof shownStatus === "string" ? shownStatus : shownStatus[flips % shownStatus.length];
    }
    for (const field of [...(effect.without ?? []), ...(spoiled.without ?? [])])
      delete shown[field];
    return shown;
  }
  const showVm = (vm: SandboxVm, effect: Effect) =>
    show(vmRecord(vm, settings.withUpdatedAt), effect);
  function readVm(vm: SandboxVm, effect: Effect, where: "alone" | "list") {
    const record = showVm(vm, effect);
    operations.noteRead(vm, where);
    return record;
  }
  const showProject = (project: SandboxProject, effect: Effect) =>
    show(projectRecord(project), effect);

  const withVm = (act: (vm: SandboxVm, asked: Asked) => Answer | Refusal) => (asked: Asked) => {
    const vm = world.vms.get(asked.ids[0] ?? "");
    return vm ? act(vm, asked) : notFound("VM");
  };
  const withProject =
    (act: (project: SandboxProject, asked: Asked) => Answer | Refusal) => (asked: Asked) => {
      const project = world.projects.get(asked.ids[0] ?? "");
      return project ? act(project, asked) : notFound("project");
    };
  const changeVm = (status: number, act: (vm: SandboxVm, asked: Asked) => SandboxVm | Refusal) =>
    withVm((vm, asked) => {
      const done = act(vm, asked);
      if (done instanceof Refusal) return done;
      const record = showVm(done, asked.effect);
      return acceptedAnswer(asked.effect, "vm", record, json(status, record));
    });
  const projectAnswer = (project: SandboxProject, effect: Effect, status: number) => {
    const record = showProject(project, effect);
    return acceptedAnswer(effect, "project", record, json(status, record));
  };

  function listProjects({ query, effect }: Asked): Answer | Refusal {
    const type = query.get("type");
    const status = query.get("status");
    if (type !== null && !projectTypes.includes(type))
      return new Refusal(422, "validation_failed", "type is unknown");
    const all: Record<string, unknown>[] = [];
    for (const project of world.projects.values()) {
      if (
        (type === null || project.type === type) &&
        (status === null || project.status === status)
      ) {
        all.push(showProject(project, effect));
      }
    }
    return listAnswer("projects", all, query, effect, "paged", {
      perPage: settings.perPage,
      most: settings.mostPerPage,
    });
  }

  function listVms(project: SandboxProject, { query, effect }: Asked): Answer {
    const all = project.vmIds
      .flatMap((id) => world.vms.get(id) ?? [])
      .map((vm) => readVm(vm, effect, "list"));
    return listAnswer("vms", all, query, effect, "wrapped", {
      perPage: settings.perPage,
      most: settings.mostPerPage,
    });
  }

  function createProject({ body, effect }: Asked): Answer | Refusal {
    const input = checkNewProject(body);
    if (input instanceof Refusal) return input;
    return projectAnswer(operations.createProject(input, effect), effect, 201);
  }

  function updateProject(project: SandboxProject, { body, effect }: Asked): Answer | Refusal {
    const change = checkProjectUpdate(body);
    if (change instanceof Refusal) return change;
    const done = operations.updateProject(project, change, effect);
    return done instanceof Refusal ? done : projectAnswer(done, effect, 200);
  }

  function deleteProject(project: SandboxProject, { effect }: Asked): Answer | Refusal {
    const done = operations.deleteProject(project, effect);
    if (done instanceof Refusal) return done;
    return acceptedAnswer(effect, "project", showProject(done, effect), { status: 204, body: "" });
  }

  function takeSnapshot(vm: SandboxVm, { body, effect }: Asked): Answer | Refusal {
    const name = checkText(fieldsOf(body), "name", 100);
    if (name instanceof Refusal) return name;
    const snapshot = operations.snapshot(vm, name);
    if (snapshot instanceof Refusal) return snapshot;
    const record = snapshotRecord(snapshot);
    return acceptedAnswer(effect, "snapshot", record, json(201, snapshotAnswer(effect, record)));
  }

  function openConsole(vm: SandboxVm, { effect }: Asked): Answer | Refusal {
    const done = operations.console(vm);
    if (done instanceof Refusal) return done;
    const url = `wss://console.sandbox.example/v1/vms/${vm.id}?token=${randomBytes(18).toString("base64url")}`;
    const session = { url, expires_at: new Date(Date.now() + settings.consoleMs).toISOString() };
    return acceptedAnswer(
      effect,
      "console",
      show(session, effect),
      json(200, show(session, effect)),
    );
  }

  const read = (value: object | Refusal, effect: Effect) =>
    value instanceof Refusal ? refusalAnswer(value) : json(200, show({ ...value }, effect));

  return [
    { method: "GET", route: "/v1/projects", handle: listProjects },
    { method: "POST", route: "/v1/projects", handle: createProject },
    {
      method: "GET",
      route: "/v1/projects/{project_id}",
      handle: withProject((it, { effect }) => json(200, showProject(it, effect))),
    },
    { method: "PATCH", route: "/v1/projects/{project_id}", handle: withProject(updateProject) },
    { method: "DELETE", route: "/v1/projects/{project_id}", handle: withProject(deleteProject) },
    { method: "GET", route: "/v1/projects/{project_id}/vms", handle: withProject(listVms) },
    {
      method: "GET",
      route: "/v1/vms/{vm_id}",
      handle: withVm((vm, { effect }) => json(200, readVm(vm, effect, "alone"))),
    },
    {
      method: "POST",
      route: "/v1/vms/{vm_id}/start",
      handle: changeVm(202, (vm, { effect }) => operations.start(vm, effect)),
    },
    {
      method: "POST",
      route: "/v1/vms/{vm_id}/stop",
      handle: changeVm(202, (vm, { effect }) => operations.stop(vm, effect)),
    },
    {
      method: "POST",
      route: "/v1/vms/{vm_id}/restart",
      handle: changeVm(202, (vm, { effect }) => operations.restart(vm, effect)),
    },
    {
      method: "PATCH",
      route: "/v1/vms/{vm_id}",
      handle: changeVm(200, (vm, { body, effect }) => {
        const specs = checkSpecs(fieldsOf(body)["specs"], []);
        return specs instanceof Refusal ? specs : operations.resize(vm, specs, effect);
      }),
    },
    {
      method: "GET",
      route: "/v1/vms/{vm_id}/metrics",
      handle: withVm((vm, { query, effect }) =>
        read(metricsOf(vm, query.get("period") ?? "1h"), effect),
      ),
    },
    {
      method: "GET",
      route: "/v1/vms/{vm_id}/attestation",
      handle: withVm((vm, { effect }) => read(attestationOf(vm), effect)),
    },
    { method: "POST", route: "/v1/vms/{vm_id}/console", handle: withVm(openConsole) },
    { method: "POST", route: "/v1/vms/{vm_id}/snapshots", handle: withVm(takeSnapshot) },
    {
      method: "POST",
      route: "/v1/vms/{vm_id}/restore",
      handle: changeVm(202, (vm, { body, effect }) => {
        const id = checkText(fieldsOf(body), "snapshot_id", 200);
        return id instanceof Refusal ? id : operations.restore(vm, id, effect);
      }),
    },
  ];
}
