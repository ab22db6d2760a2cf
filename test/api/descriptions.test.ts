import { afterAll, describe, expect, it } from "vitest";
import { connectAgent, textOf } from "../../demo/agent.ts";
import { startWorld } from "../support/start-world.ts";
import {
  addressOf,
  apiPolicy,
  everythingToken,
  readAs,
  token,
} from "../features/proposals/asking.ts";

const world = await startWorld({
  policy: apiPolicy,
  env: { API_PORT: "0" },
  prepare({ edit }) {
    for (let n = 10; n < 61; n++) edit.addVm({ project: "staging", name: `more-${n}` });
  },
});
afterAll(() => world.close());

type Answer = Awaited<ReturnType<Awaited<ReturnType<typeof connectAgent>>["callTool"]>>;
type Json = Record<string, unknown>;

interface Asking {
  /** The JSON of a call that is taken. */
  reads(args: Json): Promise<Json>;
  /** The sentence of a call that is refused. */
  refuses(args: Json): Promise<string>;
}

const names = (answer: Json, key: string) =>
  (answer[key] as { name: string }[]).map(({ name }) => name);
const isOrdered = (values: readonly number[]) =>
  values.every((value, n) => value <= (values[n - 1] ?? value));

/** One VM, named in each of the ways that the description tells. */
const takesOneVm =
  (also: (answer: Json) => void = () => undefined) =>
  async ({ reads, refuses }: Asking) => {
    for (const vm of ["vm-payments-db-1", "db-1", "payments/db-1"]) {
      const answer = await reads({ vm });
      expect(JSON.stringify(answer), vm).toContain("vm-payments-db-1");
      also(answer);
    }
    expect(await refuses({ vm: "no-such-vm" })).toContain("There is no VM called no-such-vm.");
  };

/** What each parameter of each tool promises, and what shows it. A description that changes needs to be shown anew. */
const promises: Record<string, Record<string, [says: string, shows: (at: Asking) => unknown]>> = {
  vm_list: {
    project: [
      "only the VMs of this project, by ID or name",
      async ({ reads }) => {
        for (const project of ["payments", "prj-payments"])
          expect(names(await reads({ project, sort: "name" }), "vms")).toEqual([
            "db-1",
            "web-1",
            "web-2",
          ]);
      },
    ],
    status: [
      "only VMs in this status",
      async ({ reads }) => {
        for (const status of ["ERROR", "error"])
          expect(names(await reads({ status }), "vms")).toEqual(["train-7"]);
      },
    ],
    sort: [
      "by `name` or `project`, or those with the most `cpu` or `memory` or the `newest` first; by default `trouble`, problems first",
      async ({ reads }) => {
        const sorted = async (sort?: string) =>
          (await reads(sort === undefined ? {} : { sort }))["vms"] as {
            name: string;
            projectName: string;
            createdAt: string;
            specs: { cpu: number; memory: number };
          }[];
        const byName = (await sorted("name")).map(({ name }) => name);
        expect(byName).toEqual(byName.toSorted());
        const byProject = (await sorted("project")).map(({ projectName }) => projectName);
        expect(byProject).toEqual(byProject.toSorted());
        for (const key of ["cpu", "memory"] as const)
          expect(isOrdered((await sorted(key)).map(({ specs }) => specs[key]))).toBe(true);
        const ages = (await sorted("newest")).map(({ createdAt }) => Date.parse(createdAt));
        expect(isOrdered(ages)).toBe(true);
        expect(await sorted()).toEqual(await sorted("trouble"));
        expect((await sorted())[0]?.name).toBe("train-7");
      },
    ],
    page: [
      "which page of 50",
      async ({ reads }) => {
        const count = (await reads({}))["count"] as number;
        expect(count).toBeGreaterThan(50);
        expect((await reads({ page: "1" }))["vms"]).toHaveLength(50);
        expect((await reads({ page: "2" }))["vms"]).toHaveLength(count - 50);
      },
    ],
  },
  vm_show: { vm: ["the VM to show, by ID, name, or project/name", takesOneVm()] },
  vm_metrics: {
    vm: ["the VM to measure, by ID, name, or project/name", takesOneVm()],
    period: [
      "how far back, as the compute service takes it: 1h",
      async ({ reads }) => {
        expect(await reads({ vm: "db-1", period: "1h" })).toMatchObject({ period: "1h" });
        expect(await reads({ vm: "db-1" })).toMatchObject({ period: "1h" });
      },
    ],
  },
  vm_attest: {
    vm: [
      "the VM to check, by ID, name, or project/name",
      async (asking) => {
        await takesOneVm((answer) => expect(answer).toHaveProperty("verdict"))(asking);
        for (const vm of ["web-*", "web-1,web-2", "web-?"])
          expect(await asking.refuses({ vm })).toContain(
            "vm takes one VM.\nCall it once for each.",
          );
      },
    ],
  },
  vm_snapshots: { vm: ["the VM, by ID, name, or project/name", takesOneVm()] },
  project_list: {
    type: [
      "only projects of this type: TEE_VM, GIT_DEPLOY, or CONTAINER",
      async ({ reads }) => {
        const all = names(await reads({}), "projects");
        const typed = [];
        for (const type of ["TEE_VM", "GIT_DEPLOY", "CONTAINER"])
          typed.push(...names(await reads({ type }), "projects"));
        expect(typed.toSorted()).toEqual(all.toSorted());
      },
    ],
    status: [
      "only projects in this status",
      async ({ reads }) => {
        const all = names(await reads({}), "projects");
        expect(names(await reads({ status: "active" }), "projects")).toEqual(all);
        expect(names(await reads({ status: "DELETING" }), "projects")).toEqual([]);
      },
    ],
    page: [
      "which page of 50",
      async ({ reads }) => {
        expect((await reads({ page: "1" }))["projects"]).not.toEqual([]);
        expect((await reads({ page: "2" }))["projects"]).toEqual([]);
      },
    ],
  },
  project_show: {
    project: [
      "the project to show, by ID or name",
      async ({ reads, refuses }) => {
        for (const project of ["payments", "prj-payments"])
          expect(await reads({ project })).toMatchObject({ id: "prj-payments" });
        expect(await refuses({ project: "no-such" })).toContain(
          "There is no project called no-such.",
        );
      },
    ],
  },
};

describe("what programs are told of each read", () => {
  it("is what it does: every parameter of every tool, through MCP", async () => {
    await using client = await connectAgent(addressOf(world, "/mcp"), {
      mode: "legacy",
      bearer: everythingToken,
    });
    const { tools } = await client.listTools();
    const described = tools.flatMap(({ name, description, inputSchema }) => {
      if (name === "propose" || name === "get_request") return [];
      // What only people in Slack have
      expect(description, name).not.toMatch(/button|chart|form\b/i);
      return Object.entries(inputSchema.properties ?? {}).map(([key, its]) => [
        `${name} ${key}`,
        (its as { description?: string }).description,
      ]);
    });
    expect(Object.fromEntries(described)).toEqual(
      Object.fromEntries(
        Object.entries(promises).flatMap(([tool, all]) =>
          Object.entries(all).map(([key, [says]]) => [`${tool} ${key}`, says]),
        ),
      ),
    );
    for (const [tool, all] of Object.entries(promises))
      for (const [, shows] of Object.values(all)) {
        const calls = async (args: Json): Promise<Answer> =>
          client.callTool({ name: tool, arguments: args });
        await shows({
          async reads(args) {
            const answer = await calls(args);
            expect(answer.isError, `${tool} ${JSON.stringify(args)} ${textOf(answer)}`).not.toBe(
              true,
            );
            return answer.structuredContent as Json;
          },
          async refuses(args) {
            const answer = await calls(args);
            expect(answer.isError, `${tool} ${JSON.stringify(args)}`).toBe(true);
            return textOf(answer);
          },
        });
      }
  });

  it("is the same in OpenAPI, and refused in the same way", async () => {
    const { body } = await readAs(world, undefined, "/v1/openapi.json");
    const paths = body["paths"] as Record<
      string,
      {
        get?: {
          operationId: string;
          summary: string;
          parameters: { name: string; schema: Json }[];
        };
      }
    >;
    const described = Object.values(paths).flatMap(({ get }) => {
      if (!get || get.operationId === "get_request") return [];
      expect(get.summary).not.toMatch(/button|chart|form\b/i);
      return get.parameters.map(({ name, schema }) => [
        `${get.operationId} ${name}`,
        schema["description"],
      ]);
    });
    expect(Object.fromEntries(described)).toEqual(
      Object.fromEntries(
        Object.entries(promises).flatMap(([tool, all]) =>
          Object.entries(all).map(([key, [says]]) => [`${tool} ${key}`, says]),
        ),
      ),
    );
    for (const several of ["web-*", "web-1,web-2"])
      expect(
        await readAs(world, token, `/v1/vms/${encodeURIComponent(several)}/attestation`),
      ).toMatchObject({ status: 404, body: { title: "vm takes one VM.", field: "vm" } });
  });

  it("offers as proposals only what can be proposed: a change of one VM", async () => {
    await using client = await connectAgent(addressOf(world, "/mcp"), {
      mode: "legacy",
      bearer: token,
    });
    const { tools } = await client.listTools();
    const propose = tools.find(({ name }) => name === "propose");
    expect(propose?.description).toContain(
      "A proposal is for one target, also where a command takes several (<vm…>).",
    );
    const several = await client.callTool({
      name: "propose",
      arguments: { command: "vm snapshot db-1,db-2 a", reason: "release 42" },
    });
    expect(several).toMatchObject({ isError: true });
    const asks = (key: string, command: string) =>
      client.callTool({ name: "propose", arguments: { command, reason: "release 42", key } });
    const [one, again] = [
      await asks("k-1", "vm snapshot db-1 a"),
      await asks("k-1", "vm snapshot db-1 a"),
    ];
    // "a call with the same key can be repeated"
    expect(again.structuredContent).toEqual(one.structuredContent);
    expect(await asks("k-1", "vm snapshot db-1 b")).toMatchObject({ isError: true });
  });
});
