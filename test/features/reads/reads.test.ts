import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stretchDeadlines } from "../../../src/deadline.ts";
import { createInventory } from "../../../src/fleet/inventory/create-inventory.ts";
import { silentLog } from "../../../src/log/log.ts";
import { smallService } from "../../fleet/inventory/small-service.ts";
import { hears } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";
import {
  apiPolicy,
  everythingToken,
  otherToken,
  readAs,
  startApiWorld,
  token,
} from "../proposals/asking.ts";
import { deployJob, deployPolicy, tokens } from "../proposals/deploy-job.ts";
import { until } from "../../support/until.ts";

/** The body without the age of the list, which differs from call to call. */
const timeless = (body: object) =>
  JSON.stringify(body).replaceAll(/ Gatehouse read the list [^.]*\./g, "");

const vmsOf = async (world: TestWorld, bearer: string, query = "") => {
  const { body } = await readAs(world, bearer, `/v1/vms${query}`);
  return (body["vms"] as { id: string }[]).map(({ id }) => id);
};

describe("a read of a service through the API", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startApiWorld();
  });
  afterAll(() => world.close());

  it("is what a read command answers, as JSON, with times in ISO 8601", async () => {
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    const read = async (path: string) => (await readAs(world, token, path)).body;
    const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
    expect(await read("/v1/vms?sort=name")).toMatchObject({
      vms: [
        {
          id: "vm-payments-db-1",
          name: "db-1",
          status: "RUNNING",
          projectId: "prj-payments",
          projectName: "payments",
          region: "eu-west-1",
          createdAt: iso,
        },
        { name: "web-1" },
        { name: "web-2" },
      ],
      page: 1,
      pages: 1,
      count: 3,
      readAt: iso,
      isStale: false,
      isLimited: true,
    });
    expect(await read("/v1/vms/db-1")).toMatchObject({
      id: "vm-payments-db-1",
      projectName: "payments",
      attestation: {},
      readAt: iso,
    });
    expect(await read("/v1/vms/payments%2Fdb-1/snapshots")).toMatchObject({
      vmId: "vm-payments-db-1",
      snapshots: [{ name: "nightly", takenAt: iso, takenBy: "U0OLIVIA" }],
    });
    expect(await read("/v1/vms/db-1/metrics?period=6h")).toMatchObject({
      period: "6h",
      cpuUsage: expect.arrayContaining([{ timestamp: iso, value: expect.any(Number) }]),
    });
    expect(await read("/v1/vms/db-1/attestation")).toMatchObject({
      vmId: "vm-payments-db-1",
      verdict: "could not verify",
      reasons: expect.arrayContaining(["no measurement is pinned for this VM"]),
    });
    expect(await read("/v1/projects")).toMatchObject({
      projects: [{ id: "prj-payments", type: "TEE_VM" }],
      count: 1,
    });
    const project = await read("/v1/projects/payments");
    expect(project).toMatchObject({ id: "prj-payments", status: "ACTIVE", readAt: iso });
    expect((project["vms"] as { name: string }[]).map(({ name }) => name).toSorted()).toEqual([
      "db-1",
      "web-1",
      "web-2",
    ]);
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("shows only what its view names: by ID, name, or glob; what is hidden is answered like what doesn't exist", async () => {
    expect(await vmsOf(world, "test-token-eager", "?sort=name")).toEqual([
      "vm-ml-gpu-1",
      "vm-ml-train-7",
      "vm-vault-vault-1",
    ]);
    expect(await vmsOf(world, everythingToken)).toHaveLength(8);
    expect(await vmsOf(world, "test-token-blind")).toEqual([]);
    expect(await vmsOf(world, token, "?status=stopped")).toEqual([]);
    // web-1 is one VM for a service that sees payments alone, and two for whoever sees everything
    expect(await readAs(world, token, "/v1/vms/web-1")).toMatchObject({ status: 200 });
    expect(await readAs(world, everythingToken, "/v1/vms/web-1")).toMatchObject({
      status: 409,
      body: {
        detail: expect.stringMatching(
          /^Did you mean (payments\/web-1 or staging\/web-1|staging\/web-1 or payments\/web-1)\?$/,
        ),
      },
    });
    for (const [hidden, unknown] of [
      ["/v1/vms/gpu-1", "/v1/vms/gpx-1"],
      ["/v1/vms/vm-ml-gpu-1", "/v1/vms/vm-ml-gpx-1"],
      ["/v1/vms/gpu-1/snapshots", "/v1/vms/gpx-1/snapshots"],
      ["/v1/vms/ml%2Fgpu-1/metrics", "/v1/vms/ml%2Fgpx-1/metrics"],
      ["/v1/vms/gpu-1/attestation", "/v1/vms/gpx-1/attestation"],
      ["/v1/vms/gpu-*/attestation", "/v1/vms/gpx-*/attestation"],
      ["/v1/projects/ml", "/v1/projects/mx"],
      ["/v1/projects/prj-ml", "/v1/projects/prj-mx"],
      ["/v1/vms?project=ml", "/v1/vms?project=mx"],
    ] as const) {
      const [one, other] = [
        await readAs(world, token, hidden),
        await readAs(world, token, unknown),
      ];
      expect(one, hidden).toMatchObject({ status: 404, type: "application/problem+json" });
      const nameless = (body: object) => timeless(body).replaceAll(/gp[ux]-|\bm[lx]\b/g, "…");
      expect(nameless(one.body)).toBe(nameless(other.body));
    }
  });

  it("needs a token that gatehouse.yml has the hash of; two count while one replaces the other", async () => {
    for (const bearer of [token, otherToken])
      expect(await readAs(world, bearer, "/v1/vms")).toMatchObject({ status: 200 });
    for (const bearer of [undefined, "", "test-token", `${token}x`, `${token} x`])
      expect(await readAs(world, bearer, "/v1/vms")).toMatchObject({
        status: 401,
        body: { title: "Unauthorized" },
      });
    expect(world.lines.join("")).not.toContain(token);
    // Each service has its own limit.
    const statuses = [];
    for (let n = 0; n < 4; n++)
      statuses.push((await readAs(world, "test-token-eager", "/v1/projects")).status);
    expect([statuses[0], statuses[3]]).toEqual([200, 429]);
    expect(await readAs(world, token, "/v1/projects")).toMatchObject({ status: 200 });
  });

  it("names the parameter that is wrong, and says what the compute service refuses", async () => {
    for (const [path, status, field] of [
      ["/v1/vms?page=0", 422, "page"],
      ["/v1/vms?sort=size", 422, "sort"],
      ["/v1/vms?csv=true", 422, "csv"],
      ["/v1/vms/db-1/attestation?raw=true", 422, "raw"],
      [`/v1/vms/db-1/metrics?period=${"1".repeat(41)}`, 422, "period"],
      ["/v1/vms/%E0%A4%A", 400, "vm"],
    ] as const)
      expect(await readAs(world, token, path), path).toMatchObject({ status, body: { field } });
    const path = "/v1/vms/vm-payments-db-1/metrics";
    world.compute.weather({ match: `GET ${path}`, status: 400, message: "no such period" });
    expect(await readAs(world, token, `${path}?period=9y`)).toMatchObject({
      status: 422,
      body: { title: expect.stringContaining("It says: no such period") },
    });
    world.compute.weather({ match: "GET /v1/vms/*", status: 503 });
    expect(await readAs(world, token, "/v1/vms/db-1")).toMatchObject({
      status: 502,
      body: { title: "The compute service can't be reached right now." },
    });
  });
});

describe("the fleet as programs read it", () => {
  /** The inventory's own reads must not be counted, and they must not make what programs read new. */
  const quiet = { env: { API_PORT: "0" }, pace: { inventoryRefreshMs: 3_600_000 } };

  it("is read by one question in 10 s of all that two gateways are asked, whether it succeeds or not", async () => {
    await using world = await startWorld({ policy: apiPolicy, ...quiet });
    await world.startProcess("gateway");
    const gateways = world.processes.map((one) => ({ ...world, processes: [one] }));
    const lease = world.key("inventory", "for-programs");
    const reads = () =>
      world.compute.calls().filter(({ path }) => /^\/v1\/projects(\?|$)/.test(path)).length;
    const asks: readonly ((of: TestWorld) => Promise<unknown>)[] = [
      (of) => vmsOf(of, everythingToken),
      (of) => readAs(of, everythingToken, "/v1/vms/nothing"),
      (of) => readAs(of, everythingToken, "/v1/vms/none%2Fx"),
    ];
    const asksAll = () => Promise.all(gateways.flatMap((of) => asks.map((ask) => ask(of))));
    /** Resolves once a question took the turn, which ends by itself, and keeps it from ending. */
    const taken = () =>
      until(async () => {
        await vmsOf(world, everythingToken);
        return (await world.client.persist(lease)) === 1;
      });
    const isStale = async () =>
      (await readAs(world, everythingToken, "/v1/vms")).body["isStale"] as boolean;

    await taken();
    const once = reads();
    await asksAll();
    expect(reads()).toBe(once);
    expect(await isStale()).toBe(false);

    world.compute.weather({ match: "reads", status: 503 });
    await world.client.del(lease);
    // The read is tried again while the question has patience, and must be over before its turn is
    stretchDeadlines(1);
    await taken();
    stretchDeadlines(30);
    expect(reads()).toBeGreaterThan(once);
    // The gateway that failed may be trying still; the other one doesn't begin
    const readByOther = () =>
      world.lines.filter((line) => /"inventory\.refreshed".*"role":"gateway"/.test(line)).length;
    const before = readByOther();
    await asksAll();
    expect(readByOther()).toBe(before);
    expect(await isStale()).toBe(true);
  });

  it.each([
    ["done", "STOPPED"],
    ["failed", "ERROR"],
  ])(
    "has what a request did as soon as it is told to be %s, at each gateway",
    async (state, status) => {
      const policy = deployPolicy().replace('"vm.restart"', '"vm.stop"');
      await using world = await startWorld({ policy, ...quiet });
      await world.startProcess("gateway");
      // The read that programs may cause was made already.
      await world.client.set(world.key("inventory", "for-programs"), "held");
      if (state === "failed")
        world.compute.weather({ match: "POST /v1/vms/*/stop", goesTo: "ERROR" });
      const job = deployJob(world);
      const { id } = (await job.proposes("vm stop web-2")).body;
      const card = await hears(world.olivia, "ops", /deploy proposes/);
      await world.olivia.presses("Run", { in: card.ts });
      let told = (await job.asks(id, "?wait=30&after=open")).body;
      while (!told.final) told = (await job.asks(id, `?wait=30&after=${told.state}`)).body;
      expect(told.state).toBe(state);
      for (const one of world.processes) {
        const { body } = await readAs({ ...world, processes: [one] }, tokens[0], "/v1/vms");
        const vms = body["vms"] as { name: string; status: string }[];
        expect(vms.find(({ name }) => name === "web-2")).toMatchObject({ status });
      }
    },
  );

  it("has the effect of a request as soon as its proposer is told, before a worker has recorded it", async () => {
    const policy = deployPolicy().replace('"vm.restart"', '"vm.stop"');
    await using world = await startWorld({ policy, ...quiet });
    await world.client.set(world.key("inventory", "for-programs"), "held");
    const status = async () => {
      const { body } = await readAs(world, tokens[0], "/v1/vms");
      return (body["vms"] as { name: string; status: string }[]).find((vm) => vm.name === "web-2")
        ?.status;
    };
    const job = deployJob(world);
    const { id } = (await job.proposes("vm stop web-2")).body;
    const card = await hears(world.olivia, "ops", /deploy proposes/);
    await world.olivia.presses("Run", { in: card.ts });
    const request = await world.ended("vm stop");
    await until(status).toBe("STOPPED");
    // The state is the one right after the end.
    await using inventory = {
      ...createInventory({
        redis: world.client,
        key: world.key,
        compute: smallService({}),
        log: silentLog(),
        refreshMs: 600_000,
        againMs: 1_000,
      }),
      async [Symbol.asyncDispose]() {
        await inventory.close();
      },
    };
    await inventory.state();
    const [vm] = (await inventory.vms()).filter(({ name }) => name === "web-2");
    if (vm) await inventory.note({ vm: { ...vm, status: "RUNNING" } });
    await world.client.hdel(world.key("request", request.record.id), "said:afterwards");
    expect(await status()).toBe("RUNNING");
    expect((await job.asks(id)).body.state).toBe("done");
    expect(await status()).toBe("STOPPED");
  });
});
