import { describe, expect, it } from "vitest";
import type { TestWorld } from "../support/start-world.ts";
import { everythingToken, otherToken, readAs, startDoorWorld, token } from "./asking.ts";

/** Without the age of the list, which differs from call to call. */
const timeless = (body: object) =>
  JSON.stringify(body).replaceAll(/ Gatehouse read the list [^.]*\./g, "");

const vmsOf = async (world: TestWorld, bearer: string, query = "") => {
  const { body } = await readAs(world, bearer, `/v1/vms${query}`);
  return (body["vms"] as { id: string }[]).map(({ id }) => id);
};

describe("what a service reads through the door", () => {
  it("is what a read command answers, as JSON, with times in ISO 8601", async () => {
    await using world = await startDoorWorld();
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

  it("doesn't read the whole fleet for a dashboard that lists it ten times", async () => {
    await using world = await startDoorWorld();
    await vmsOf(world, everythingToken);
    const reads = () => world.compute.calls().filter(({ method }) => method === "GET").length;
    const before = reads();
    for (let n = 0; n < 10; n++) {
      expect(await vmsOf(world, everythingToken)).toHaveLength(8);
      expect((await readAs(world, everythingToken, "/v1/projects")).status).toBe(200);
    }
    const ofTen = reads() - before;
    const began = reads();
    await world.olivia.types("ops", "/vm list");
    await world.olivia.until(({ channels }) => channels.length > 0);
    await expect.poll(() => reads() - began).toBeGreaterThan(0);
    // Beside what the inventory reads by itself
    expect(ofTen).toBeLessThan(2 * (reads() - began) + 1);
  });

  it("is only what its view names: by ID, name, or glob; what is hidden is answered like what doesn't exist", async () => {
    await using world = await startDoorWorld();
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
    await using world = await startDoorWorld();
    for (const bearer of [token, otherToken])
      expect(await readAs(world, bearer, "/v1/vms")).toMatchObject({ status: 200 });
    for (const bearer of [undefined, "", "test-token", `${token}x`, `${token} x`])
      expect(await readAs(world, bearer, "/v1/vms")).toMatchObject({
        status: 401,
        body: { title: "Unauthorized" },
      });
    expect(world.lines.join("")).not.toContain(token);
    // Its limit is its own
    for (const status of [200, 200, 200, 429])
      expect(await readAs(world, "test-token-eager", "/v1/projects")).toMatchObject({ status });
    expect(await readAs(world, token, "/v1/projects")).toMatchObject({ status: 200 });
  });

  it("names the parameter that is wrong, and says what the compute service refuses", async () => {
    await using world = await startDoorWorld();
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
