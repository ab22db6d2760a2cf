import { describe, expect, it } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import type { ListShape, Storm } from "../../../sandbox/compute/weather.ts";
import type { ListGaps } from "../../../src/fleet/compute/compute.ts";
import {
  answering,
  clientOf,
  failureOf,
  projectRecord,
  says,
  vmRecord,
  logTo,
} from "./answering.ts";

describe("the list of a project's VMs", () => {
  const shapes: [ListShape, calls: number][] = [
    ["array", 1],
    ["wrapped", 1],
    ["data", 1],
    ["items", 1],
    ["paged", 3],
    ["paged-without-total", 4],
  ];

  it.each(shapes)("is read whole as %s, in %i calls", async (list, calls) => {
    await using sandbox = await startSandboxCompute({
      world: { projects: 1, vmsPerProject: 25 },
      perPage: 10,
    });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ list, mostPerPage: 10 });
    const vms = await compute.projects.vms("prj-0000");
    expect(vms.map((vm) => vm.id)).toEqual(sandbox.project("prj-0000").vmIds);
    expect(sandbox.calls()).toHaveLength(calls);
  });

  it.each([
    ["an empty array", []],
    ["null for none", { vms: null }],
    ["no VMs, paged", { vms: [], total: 0, page: 1 }],
  ])("is empty with %s", async (_, body) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await compute.projects.vms("prj-1")).toEqual([]);
  });

  it.each([["null"], ["{}"], ['{"vms": "none"}'], ["7"]])(
    "is unexpected when it is %s",
    async (text) => {
      await using server = await answering((_, response) =>
        response.writeHead(200, { "content-type": "application/json" }).end(text),
      );
      await using compute = clientOf(server.url);
      expect((await failureOf(compute.projects.vms("prj-1"))).message).toMatch(/vms is missing$/);
    },
  );

  it("gives a VM the project it was asked for when the record has none", async () => {
    await using server = await answering(says([{ ...vmRecord, project_id: undefined }]));
    await using compute = clientOf(server.url);
    expect(await compute.projects.vms("prj-9")).toMatchObject([{ projectId: "prj-9" }]);
  });
});

describe("the list of all projects", () => {
  const world = { projects: 45, vmsPerProject: 0 };

  it("follows pages that are smaller than asked for", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 7 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    expect(await compute.projects.listAll()).toHaveLength(45);
    expect(sandbox.calls()).toHaveLength(7);
  });

  it("needs no total", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 20 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ list: "paged-without-total" });
    expect(await compute.projects.listAll()).toHaveLength(45);
  });

  it("stops at the most that is wanted", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 10 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    expect(await compute.projects.listAll(15)).toHaveLength(15);
    expect(sandbox.calls()).toHaveLength(2);
  });

  it("ends when the service ignores the page, and says in the log that it is incomplete", async () => {
    const events: object[] = [];
    await using server = await answering(
      says({ projects: [projectRecord], total: 50, page: 1, per_page: 1 }),
    );
    await using compute = clientOf(server.url, { log: logTo((line) => events.push(line)) });
    expect(await compute.projects.listAll()).toHaveLength(1);
    expect(server.asked.length).toBeLessThanOrEqual(9);
    expect(events).toEqual([{ event: "compute.list-incomplete", endpoint: "GET /v1/projects" }]);
  });

  it("ends when the service always says that there is more", async () => {
    await using server = await answering(says({ projects: [projectRecord], has_more: true }));
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll()).toHaveLength(1);
    expect(server.asked).toHaveLength(2);
  });

  it("asks without per_page where the service refuses ours", async () => {
    await using server = await answering((request, response) =>
      request.url?.includes("per_page")
        ? says({ error: "per_page too large" }, 422)(request, response)
        : says({ projects: request.url?.includes("page=2") ? [] : [projectRecord] })(
            request,
            response,
          ),
    );
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll()).toHaveLength(1);
    expect(server.asked).toEqual([
      "GET /v1/projects?page=1&per_page=100",
      "GET /v1/projects",
      "GET /v1/projects?page=2",
    ]);
  });

  it("reads known pages side by side: 500 projects cost two round trips", async () => {
    const records = Array.from({ length: 500 }, (_, n) => ({ ...projectRecord, id: `prj-${n}` }));
    const waiting: (() => void)[] = [];
    await using server = await answering((request, response) => {
      const page = Number(new URL(request.url ?? "", "http://x").searchParams.get("page"));
      const projects = records.slice(100 * (page - 1), 100 * page);
      const answer = () => says({ projects, total: 500, page, per_page: 100 })(request, response);
      if (page === 1) return answer();
      // None of the others is answered before all were asked for
      waiting.push(answer);
      if (waiting.length === 4) for (const each of waiting) each();
    });
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll()).toHaveLength(500);
    expect(server.asked).toHaveLength(5);
  });
});

describe("a list whose pages are full", () => {
  const world = { projects: 45, vmsPerProject: 0 };

  it.each<[what: string, mostPerPage: number, weather: Storm]>([
    ["counts only the page", 10, { total: "page" }],
    ["is 0", 10, { total: 0 }],
    ["is too small", 10, { total: 15 }],
    ["counts only the page, and so does the last full one", 15, { total: "page" }],
    [
      "counts only the page, and per_page is what was asked for",
      20,
      { total: "page", repeatsPerPage: true },
    ],
    ["is 0, and per_page is what was asked for", 7, { total: 0, repeatsPerPage: true }],
  ])("is read on although its total %s", async (_, mostPerPage, weather) => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ match: "GET /v1/projects", ...weather });
    const gaps: ListGaps[] = [];
    const all = await compute.projects.listAll(undefined, { onGaps: (each) => gaps.push(each) });
    expect(all).toHaveLength(45);
    expect(gaps).toEqual([]);
  });

  it.each([["page" as const], [0]])(
    "holds for a project's VMs with a total of %s",
    async (total) => {
      await using sandbox = await startSandboxCompute({
        world: { projects: 1, vmsPerProject: 30 },
        perPage: 10,
      });
      await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
      sandbox.weather({ list: "paged", mostPerPage: 10, total });
      expect(await compute.projects.vms("prj-0000")).toHaveLength(30);
    },
  );

  it.each([400, 404, 422] as const)("ends where a page after the last is a %i", async (status) => {
    const all = { projects: 40, vmsPerProject: 10 };
    await using sandbox = await startSandboxCompute({ world: all, mostPerPage: 10 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ list: "paged", mostPerPage: 10, total: "page", pastLastPage: status });
    const gaps: ListGaps[] = [];
    const onGaps = (each: ListGaps) => gaps.push(each);
    expect(await compute.projects.listAll(undefined, { onGaps })).toHaveLength(40);
    expect(await compute.projects.vms("prj-0000", { onGaps })).toHaveLength(10);
    expect(gaps).toEqual([]);
    sandbox.clear();
    sandbox.weather({ list: "paged", mostPerPage: 10, total: 65, pastLastPage: status });
    expect(await compute.projects.listAll(undefined, { onGaps })).toHaveLength(40);
    expect(gaps).toEqual([{ leftOut: [], marked: [], isCut: true }]);
  });

  it("stops at a total that counts more than the page, without another call", async () => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 15 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    expect(await compute.projects.listAll()).toHaveLength(45);
    expect(sandbox.calls()).toHaveLength(3);
  });

  it("doesn't believe a total that a search engine cut at a round number", async () => {
    const records = (from: number) =>
      Array.from({ length: 500 }, (_, at) => ({ ...projectRecord, id: `p-${from + at}` }));
    await using server = await answering((request, response) => {
      const page = Number(new URL(request.url ?? "", "http://x").searchParams.get("page"));
      const projects = page <= 3 ? records(page * 500) : [];
      says({ projects, total: 1_000, page, per_page: 500 })(request, response);
    });
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll()).toHaveLength(1_500);
  });

  it.each<[what: string, total: Storm["total"]]>([
    ["counts the page", "page"],
    ["is 0", 0],
    ["counts all", 45],
  ])("ends where every page is the first one, and says so, when total %s", async (_, total) => {
    await using sandbox = await startSandboxCompute({ world, mostPerPage: 10 });
    const events: object[] = [];
    const log = logTo((line) => events.push(line));
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey, log });
    sandbox.weather({ ignoresPage: true, ...(total === undefined ? {} : { total }) });
    const gaps: ListGaps[] = [];
    const all = await compute.projects.listAll(undefined, { onGaps: (each) => gaps.push(each) });
    expect(all).toHaveLength(10);
    expect(sandbox.calls().length).toBeLessThanOrEqual(5);
    expect(gaps).toEqual([{ leftOut: [], marked: [], isCut: true }]);
    expect(events).toEqual([{ event: "compute.list-incomplete", endpoint: "GET /v1/projects" }]);
  });

  it("ends where pages never do", async () => {
    let id = 0;
    await using server = await answering((request, response) => {
      id += 1;
      says({ projects: [{ ...projectRecord, id: `p-${id}` }], has_more: true })(request, response);
    });
    await using compute = clientOf(server.url);
    expect(await compute.projects.listAll(100)).toHaveLength(100);
    expect(server.asked).toHaveLength(100);
  });
});

type Turn = { body: object; headers?: Record<string, string> };

describe("a list that goes on in the service's own way", () => {
  const all = Array.from({ length: 12 }, (_, index) => ({ ...vmRecord, id: `vm-${index}` }));
  const size = 5;

  /** A service that finds the next page by `parameter`, and tells it as `turn` says. */
  async function reading(
    parameter: string,
    turn: (vms: object[], next: string | undefined, url: URL) => Turn,
  ) {
    await using server = await answering((request, response) => {
      const url = new URL(request.url ?? "", "http://127.0.0.1");
      const mark = url.searchParams.get(parameter);
      const start = parameter === "page" ? (Number(mark ?? 1) - 1) * size : Number(mark ?? 0);
      const end = start + size;
      const next = parameter === "page" ? String(end / size + 1) : String(end);
      const { body, headers } = turn(all.slice(start, end), end < 12 ? next : undefined, url);
      says(body, 200, headers)(request, response);
    });
    await using compute = clientOf(server.url);
    const gaps: ListGaps[] = [];
    const vms = await compute.projects.vms("prj-1", { onGaps: (found) => gaps.push(found) });
    return { read: vms.length, isCut: gaps.some(({ isCut }) => isCut), calls: server.asked };
  }

  it.each<[string, parameter: string, turn: Parameters<typeof reading>[1]]>([
    [
      "meta.pagination.next_page",
      "page",
      (vms, next) => ({
        body: { vms, meta: { pagination: { next_page: next ? Number(next) : null } } },
      }),
    ],
    ["next_cursor", "cursor", (vms, next) => ({ body: { vms, next_cursor: next ?? "" } })],
    [
      "data with pageInfo",
      "cursor",
      (vms, next) => ({
        body: {
          data: { vms, pageInfo: { hasNextPage: next !== undefined, endCursor: next ?? "12" } },
        },
      }),
    ],
    ["nextPageToken", "page_token", (vms, next) => ({ body: { vms, nextPageToken: next } })],
    [
      "links.next with an offset",
      "offset",
      (vms, next) => ({
        body: { vms, links: { next: next ? `http://elsewhere.example/v1?offset=${next}` : null } },
      }),
    ],
    [
      "links.next.href",
      "page",
      (vms, next) => ({
        body: { vms, _links: { next: next ? { href: `/v1?page=${next}` } : undefined } },
      }),
    ],
    [
      "a Link header",
      "after",
      (vms, next) => ({
        body: vms,
        headers: {
          link: next
            ? `</v1?after=0>; rel="first", </v1?after=${next}>; rel="next"`
            : '</v1>; rel="first"',
        },
      }),
    ],
    ["X-Next-Page", "page", (vms, next) => ({ body: vms, headers: { "x-next-page": next ?? "" } })],
    ["X-Total-Count", "page", (vms) => ({ body: vms, headers: { "x-total-count": "12" } })],
    [
      "current and last page",
      "page",
      (vms, _, url) => ({
        body: {
          vms,
          meta: { currentPage: Number(url.searchParams.get("page") ?? 1), last_page: 3 },
        },
      }),
    ],
  ])("is read to its end: %s", async (_, parameter, turn) => {
    const { read, isCut, calls } = await reading(parameter, turn);
    expect({ read, isCut }).toEqual({ read: 12, isCut: false });
    expect(calls.every((call) => call.startsWith("GET /v1/projects/prj-1/vms"))).toBe(true);
  });

  it.each<[string, turn: Parameters<typeof reading>[1]]>([
    ["a next page of a form that nobody knows", (vms) => ({ body: { vms, next: { after: 5 } } })],
    [
      "a part that the service couldn't read",
      (vms) => ({ body: { vms, errors: ["rack 3 is silent"] } }),
    ],
    ["an offset and a total", (vms) => ({ body: { vms, offset: 0, limit: 5, total: 12 } })],
  ])("is told as incomplete: %s", async (_, turn) => {
    expect(await reading("no-such", turn)).toMatchObject({ read: 5, isCut: true });
  });
});

describe("one broken record", () => {
  const good = [1, 2].map((at) => ({ ...vmRecord, id: `vm-${at}`, name: `web-${at}` }));

  async function listed(broken: unknown) {
    await using server = await answering(says({ vms: [good[0], broken, good[1]] }));
    await using compute = clientOf(server.url);
    const gaps: ListGaps[] = [];
    const vms = await compute.projects.vms("prj-1", { onGaps: (each) => gaps.push(each) });
    return { vms, gaps };
  }

  const withoutUse: [what: string, record: unknown, name: string | undefined, problem: string][] = [
    ["no ID", { ...vmRecord, id: undefined, name: "web-3" }, "web-3", "id is missing"],
    ["null for an ID", { ...vmRecord, id: null, name: "web-3" }, "web-3", "id is missing"],
    ["an ID of another type", { ...vmRecord, id: {} }, "web-1", "id has the wrong form"],
    ["null for a record", null, undefined, "the record has the wrong form"],
    ["a text for a record", "vm-3", undefined, "the record has the wrong form"],
    [
      "the project of another VM",
      { ...vmRecord, id: "vm-3", project_id: "prj-2" },
      "web-1",
      "project_id is that of another one",
    ],
  ];
  it.each(withoutUse)("is left out and named: %s", async (_, record, name, problem) => {
    const { vms, gaps } = await listed(record);
    expect(vms.map(({ id }) => id)).toEqual(["vm-1", "vm-2"]);
    expect(gaps).toEqual([{ leftOut: [{ name, problem }], marked: [], isCut: false }]);
  });

  const broken = { ...vmRecord, id: "vm-3", name: "web-3" };
  it.each([
    ["null for a status", { ...broken, status: null }],
    ["no status", { ...broken, status: undefined }],
    ["a status of another type", { ...broken, status: 5 }],
    ["an empty status", { ...broken, status: "" }],
  ])("is marked: %s", async (_, record) => {
    const { vms, gaps } = await listed(record);
    expect(vms.map(({ name, status }) => [name, status])).toEqual([
      ["web-1", "RUNNING"],
      ["web-3", "UNREADABLE"],
      ["web-2", "RUNNING"],
    ]);
    expect(gaps).toEqual([{ leftOut: [], marked: ["vm-3"], isCut: false }]);
  });

  it("is marked without a name: the ID stands in its place", async () => {
    const { vms, gaps } = await listed({ ...broken, name: null });
    expect(vms[1]).toMatchObject({ id: "vm-3", name: "vm-3", status: "RUNNING" });
    expect(gaps).toEqual([{ leftOut: [], marked: ["vm-3"], isCut: false }]);
  });

  it("doesn't hide every project", async () => {
    const projects = [
      projectRecord,
      { ...projectRecord, id: "prj-2", status: null },
      { name: "x" },
      { ...projectRecord, id: "prj-3", type: null },
    ];
    await using server = await answering(says({ projects, total: 4, page: 1, per_page: 100 }));
    await using compute = clientOf(server.url);
    const gaps: ListGaps[] = [];
    const all = await compute.projects.listAll(undefined, { onGaps: (each) => gaps.push(each) });
    expect(all.map(({ id, type, status }) => [id, type, status])).toEqual([
      ["prj-1", "TEE_VM", "ACTIVE"],
      ["prj-2", "TEE_VM", "UNREADABLE"],
      ["prj-3", "UNREADABLE", "ACTIVE"],
    ]);
    expect(gaps).toEqual([
      {
        leftOut: [{ name: "x", problem: "id is missing" }],
        marked: ["prj-2", "prj-3"],
        isCut: false,
      },
    ]);
  });

  it("doesn't end a list of pages, also where a page has nothing else", async () => {
    await using server = await answering((request, response) => {
      const page = Number(new URL(request.url ?? "", "http://x").searchParams.get("page"));
      const projects = [
        [projectRecord],
        [{ ...projectRecord, id: null }],
        [{ ...projectRecord, id: "prj-3" }],
      ][page - 1];
      says({ projects: projects ?? [], total: 1, page, per_page: 1 })(request, response);
    });
    await using compute = clientOf(server.url);
    expect((await compute.projects.listAll()).map(({ id }) => id)).toEqual(["prj-1", "prj-3"]);
  });
});
