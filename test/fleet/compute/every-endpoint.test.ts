import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { type Endpoint, endpoints } from "../../../src/fleet/compute/compute.ts";
import type { AnswerShape } from "../../../sandbox/compute/weather.ts";
import { callOf } from "../../../src/core/request/stage.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { startWorld, testTiming, type TestWorld } from "../../support/start-world.ts";
import { wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";

/**
 * What a change may be answered with: its record, as it is or in something, or a task, text, or nothing. The client is tried with each
 * change and each of them (`answers.test.ts`); what follows depends on whether the record came.
 */
const withRecord: readonly AnswerShape[] = ["record", "wrapped", "data"];
const withoutRecord: readonly AnswerShape[] = ["task", "text", "empty"];

/** No approvals and no limits: what is tested here is the way from words to the service and back. */
const policy = `access: { view: ["*"], operate: ["S01ONCALL"], approve: ["S02LEADS"], administer: ["U0ADA"] }
approvals: [{ operations: ["*.*"], required: 0 }]
limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
${testTiming}
`;

interface Row {
  endpoint: Endpoint;
  /** The words that reach it, on the VM or project of this name. */
  words(name: string): string;
  /** Values of the dialog, where it opens one. */
  form?(name: string): Record<string, string | string[]>;
  /** The VM it is about begins in this status; without one it is about a project. */
  vm?: "RUNNING" | "STOPPED";
  /** Only REBOOTING shows that it began: the VM stays so until it was seen. */
  reboots?: boolean;
}

const changes: readonly Row[] = [
  { endpoint: endpoints.startVm, words: (name) => `/vm start ${name}`, vm: "STOPPED" },
  { endpoint: endpoints.stopVm, words: (name) => `/vm stop ${name}`, vm: "RUNNING" },
  {
    endpoint: endpoints.restartVm,
    words: (name) => `/vm restart ${name}`,
    vm: "RUNNING",
    reboots: true,
  },
  {
    endpoint: endpoints.resizeVm,
    words: (name) => `/vm resize ${name} --cpu 8 --memory 32`,
    form: () => ({}),
    vm: "RUNNING",
  },
  {
    endpoint: endpoints.takeSnapshot,
    words: (name) => `/vm snapshot ${name} before`,
    vm: "RUNNING",
  },
  {
    endpoint: endpoints.restoreVm,
    words: (name) => `/vm restore ${name} ${snapshots.get(name)}`,
    form: (name) => ({
      "Safety snapshot": ["true"],
      [`Type ${name} to confirm`]: name,
      Reason: "a test of shapes",
    }),
    vm: "RUNNING",
    reboots: true,
  },
  {
    endpoint: endpoints.createProject,
    words: (name) => `/project create --name new-${name} --type CONTAINER --region eu-west-1`,
    form: () => ({}),
  },
  {
    endpoint: endpoints.updateProject,
    words: (name) => `/project update ${name} --name renamed-${name}`,
    form: () => ({}),
  },
  {
    endpoint: endpoints.deleteProject,
    words: (name) => `/project delete ${name}`,
    form: (name) => ({ [`Type ${name} to confirm`]: name, Reason: "a test of shapes" }),
  },
];

const reads: readonly (readonly [Endpoint, string])[] = [
  [endpoints.listProjects, "/project list"],
  [endpoints.getProject, "/project show payments"],
  [endpoints.listVms, "/project show payments"],
  [endpoints.getVm, "/vm show web-2"],
  [endpoints.vmMetrics, "/vm metrics web-2"],
  [endpoints.vmAttestation, "/vm attest web-2"],
];

/** `restart-task`: one VM in a project of its own, or one project, for each change and shape. */
const nameOf = (row: Row, shape: AnswerShape) =>
  `${row.endpoint.split("/").at(-1)?.replaceAll(/\W/g, "")}-${shape}-${row.endpoint.split(" ")[0]?.toLowerCase()}`;
const snapshots = new Map<string, string>();

/** Each change with its record and without it, so that each shape comes in turn. */
const asked = changes.flatMap((row, n) => [
  { row, endpoint: row.endpoint, shape: withRecord[n % 3]! },
  { row, endpoint: row.endpoint, shape: withoutRecord[n % 3]! },
]);

let world: TestWorld;
let requests: StoredRequest[];

beforeAll(async () => {
  world = await startWorld({
    policy,
    pace: { inventoryRefreshMs: 200 },
  });
  const { edit } = world.compute;
  for (const { row, shape } of asked) {
    const name = nameOf(row, shape);
    const isBox =
      row.endpoint === endpoints.updateProject || row.endpoint === endpoints.deleteProject;
    if (row.vm) {
      const project = edit.addProject({ id: `prj-${name}`, name: `of-${name}` });
      edit.addVm({ project, id: `vm-${name}`, name, status: row.vm });
    } else if (isBox) edit.addProject({ id: `prj-${name}`, name, type: "CONTAINER" });
    if (row.endpoint === endpoints.restoreVm)
      snapshots.set(name, edit.addSnapshot({ vm: `vm-${name}`, name: "before" }));
  }
  // Twice: by the end of the second look all that was added is known
  const last = asked.findLast(({ row }) => row.vm !== undefined);
  await world.compute.called(`GET /v1/projects/prj-${last && nameOf(last.row, last.shape)}/vms`, 2);
  world.compute.forget();
  for (const { row, shape } of asked) await askFor(row, shape);
  for (const { row, shape } of asked.filter(({ row: { reboots } }) => reboots)) {
    const name = nameOf(row, shape);
    await until(async () => {
      const request = await requestAbout(name);
      return request && callOf(request.stage)?.mark;
    });
    edit.setStatus({ vm: `vm-${name}`, status: "RUNNING" });
  }
  await until(ended).toBe(asked.length);
});
afterAll(() => world.close());

const aboutOf = (row: Row, shape: AnswerShape) =>
  row.endpoint === endpoints.createProject ? `new-${nameOf(row, shape)}` : nameOf(row, shape);

async function requestAbout(name: string): Promise<StoredRequest | undefined> {
  const all = await world.store.getMany(await world.store.recentIds({}, 200));
  return all.find(({ record }) => record.target.name === name);
}

async function askFor(row: Row, shape: AnswerShape): Promise<void> {
  const name = nameOf(row, shape);
  const [method = "", template = ""] = row.endpoint.split(" ");
  const path = template.replace("{vm_id}", `vm-${name}`).replace("{project_id}", `prj-${name}`);
  if (row.endpoint === endpoints.createProject)
    world.compute.weather({ match: row.endpoint, answer: shape, times: 1 });
  else
    world.compute.weather({
      match: `${method} ${path}`,
      answer: shape,
      stuck: row.reboots === true,
    });
  await world.olivia.types("ops", row.words(name));
  if (row.form) {
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    const said = await world.olivia.submits(row.form(name));
    expect(said.errors).toBeUndefined();
  }
  if (row.endpoint === endpoints.createProject)
    await world.compute.called(row.endpoint, withRecord.includes(shape) ? 1 : 2);
}

async function ended(): Promise<number> {
  requests = await world.store.getMany(await world.store.recentIds({}, 200));
  return requests.filter(({ final, state }) => final || state === "unknown").length;
}

describe("every endpoint of the service that changes something", () => {
  it.each(asked)(
    "$endpoint is called once from Slack, and its end is known when it answers with: $shape",
    ({ row, shape }) => {
      const about = aboutOf(row, shape);
      const request = requests.find(({ record }) => record.target.name === about);
      expect(request).toMatchObject({ state: "done" });
      const [method = "", template = ""] = row.endpoint.split(" ");
      const name = nameOf(row, shape);
      const sent = world.compute.writes().filter(({ method: its, path, body }) => {
        if (its !== method) return false;
        if (row.endpoint === endpoints.createProject)
          return path === template && JSON.stringify(body).includes(about);
        return (
          path === template.replace("{vm_id}", `vm-${name}`).replace("{project_id}", `prj-${name}`)
        );
      });
      expect(sent).toHaveLength(1);
    },
  );

  it("has no effect twice, and none that nobody asked for", () => {
    expect(world.compute.writes()).toHaveLength(asked.length);
  });

  it("takes no task for a snapshot: without an id there is nothing to restore", () => {
    const taken = requests.filter(({ record }) => record.command === "vm snapshot");
    const ids = taken.map(({ stage }) => callOf(stage)?.answer?.snapshotId);
    expect(ids).toHaveLength(2);
    expect(ids).toEqual(expect.arrayContaining([undefined, expect.stringMatching(/^snap-/)]));
  });
});

describe("every endpoint that only reads", () => {
  it.each(reads)("%s is reached from %s", async (endpoint, words) => {
    world.compute.forget();
    const before = world.olivia.seesChannel("status").messages.length;
    await world.olivia.types("status", words);
    await world.olivia.until(() => world.olivia.seesChannel("status").messages.length > before);
    const [method, template = ""] = endpoint.split(" ");
    const pattern = new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    const called = () =>
      world.compute.calls().some((call) => call.method === method && pattern.test(call.path));
    // The list of projects is read by the inventory, for everybody
    await until(called).toBe(true);
  });
});

describe.runIf(commands.some(({ name }) => name === "vm console"))(endpoints.openConsole, () => {
  it.each(["record", "empty"] as const)(
    "is called once by the button, and shows the address or says why not when it answers with: %s",
    async (shape) => {
      world.compute.forget();
      const weather = world.compute.weather({ match: endpoints.openConsole, answer: shape });
      await world.olivia.types("random", "/vm console web-2");
      const seen = () =>
        world.olivia
          .seesChannel("random")
          .messages.filter(({ ephemeral }) => ephemeral)
          .map(wordsOf)
          .join("\n");
      await world.olivia.until(() => seen().includes("[Open console]"));
      await world.olivia.presses("Open console", { channel: "random" });
      const told = shape === "record" ? "wss://console" : "can't read";
      await world.olivia.until(() => seen().includes(told));
      expect(world.compute.writes().map(({ path }) => path)).toEqual([
        "/v1/vms/vm-payments-web-2/console",
      ]);
      expect(world.vera.seesChannel("random").messages.map(wordsOf).join()).not.toContain("wss://");
      world.compute.clear(weather);
      world.slack.workspace.ephemerals.splice(0);
    },
  );
});

it("every endpoint of the service is in these tables", () => {
  const reached = [
    ...changes.map(({ endpoint }) => endpoint),
    ...reads.map(([endpoint]) => endpoint),
    endpoints.openConsole,
  ];
  expect(new Set(reached)).toEqual(new Set(Object.values(endpoints)));
});
