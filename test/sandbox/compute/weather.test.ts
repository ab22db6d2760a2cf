import { describe, expect, it } from "vitest";
import {
  startSandboxCompute,
  type SandboxCompute,
} from "../../../sandbox/compute/start-sandbox-compute.ts";
import { createWeather } from "../../../sandbox/compute/weather.ts";
import { call } from "./calling.ts";

const web = "/v1/vms/vm-payments-web-1";
const restarts = (sandbox: SandboxCompute) => sandbox.vm("payments/web-1").restarts;
const fails = (made: Promise<unknown>) =>
  made.then(
    () => "answered",
    () => "failed",
  );

function days(seed: number): number[] {
  const weather = createWeather(seed);
  weather.add({ probability: 0.26, lost: "after" });
  return Array.from({ length: 1000 }, () => (weather.strike("POST", "/").ids.length > 0 ? 1 : 0));
}

describe("weather", () => {
  it("strikes what it is meant for, as often as it is meant to", () => {
    const weather = createWeather(1);
    const struck = (method: string, path: string) => weather.strike(method, path).effect.status;
    weather.add({ match: "POST /v1/vms/:id/restart", status: 500, times: 1, skip: 1 });
    weather.add({ match: "GET /v1/projects*", status: 502 });
    weather.add({ match: "* /v1/vms/vm-7", status: 404 });
    weather.add({ match: "writes", status: 503, times: 1 });
    expect(struck("POST", "/v1/vms/a/restart")).toBe(503);
    expect(struck("POST", "/v1/vms/a/restart")).toBe(500);
    expect(struck("POST", "/v1/vms/a/restart")).toBeUndefined();
    expect(struck("POST", "/v1/vms/a/b/restart")).toBeUndefined();
    expect(struck("GET", "/v1/projects/x/vms")).toBe(502);
    expect(struck("DELETE", "/v1/projects/x")).toBeUndefined();
    expect(struck("GET", "/v1/vms/vm-7")).toBe(404);
    expect(struck("GET", "/v1/vms/vm-70")).toBeUndefined();
    weather.clear();
    expect(struck("GET", "/v1/vms/vm-7")).toBeUndefined();
  });

  it("is the same for the same seed when it has a probability", () => {
    expect(days(7)).toEqual(days(7));
    expect(days(7)).not.toEqual(days(8));
    const share = days(7).reduce<number>((sum, day) => sum + day, 0) / 1000;
    expect(share).toBeGreaterThan(0.21);
    expect(share).toBeLessThan(0.31);
  });

  it("never makes a fault by chance that no service has, like a 429 that was done all the same", () => {
    const weather = createWeather(3);
    weather.add({ probability: 0.5, status: 502, applied: true });
    weather.add({ probability: 0.5, status: 429 });
    weather.add({ slowMs: 5 });
    const struck = Array.from({ length: 200 }, () => weather.strike("POST", "/"));
    expect(Math.max(...struck.map(({ ids }) => ids.length))).toBe(2);
    for (const { effect } of struck)
      expect(effect).not.toMatchObject({ status: 429, applied: true });
    expect(new Set(struck.map(({ effect }) => effect.status))).toEqual(
      new Set([502, 429, undefined]),
    );
    expect(struck.every(({ effect }) => effect.slowMs === 5)).toBe(true);
  });

  it("loses an answer before or after the effect", async () => {
    await using sandbox = await startSandboxCompute({ transitionMs: 5 });
    sandbox.weather({ match: "writes", lost: "before", times: 1 });
    sandbox.weather({ match: "writes", lost: "after", times: 1, skip: 1 });
    expect(await fails(call(sandbox, `POST ${web}/restart`))).toBe("failed");
    expect(restarts(sandbox)).toBe(0);
    expect(await fails(call(sandbox, `POST ${web}/restart`))).toBe("failed");
    expect(restarts(sandbox)).toBe(1);
    expect(sandbox.writes()).toMatchObject([
      { answer: "lost", effect: false },
      { answer: "lost", effect: true },
    ]);
  });

  it("applies late, after the answer was lost", async () => {
    await using sandbox = await startSandboxCompute({ transitionMs: 5 });
    sandbox.weather({ match: "writes", lateMs: 30 });
    expect(await fails(call(sandbox, `POST ${web}/restart`))).toBe("failed");
    expect(restarts(sandbox)).toBe(0);
    expect(sandbox.writes()[0]?.effect).toBe(false);
    await sandbox.settled();
    expect(restarts(sandbox)).toBe(1);
    expect(sandbox.writes()[0]?.effect).toBe(true);
  });

  it("says 500 though it is done", async () => {
    await using sandbox = await startSandboxCompute({ transitionMs: 5 });
    sandbox.weather({ status: 500, applied: true, errorShape: "html", times: 1 });
    expect((await call(sandbox, `POST ${web}/restart`)).body["text"]).toContain("<html>");
    expect(restarts(sandbox)).toBe(1);
  });

  it("leaves a VM stuck, or lets it end in ERROR", async () => {
    await using sandbox = await startSandboxCompute({ transitionMs: 5 });
    sandbox.weather({ match: "* /v1/vms/vm-payments-web-1/*", stuck: true });
    sandbox.weather({ match: "* /v1/vms/vm-payments-web-2/*", goesTo: "ERROR" });
    await call(sandbox, `POST ${web}/restart`);
    await call(sandbox, "POST /v1/vms/vm-payments-web-2/restart");
    await sandbox.settled();
    expect(sandbox.vm("payments/web-1")).toMatchObject({
      status: "REBOOTING",
      bootCount: 1,
      restarts: 1,
    });
    expect(sandbox.vm("web-2")).toMatchObject({ status: "ERROR", bootCount: 1 });
  });

  it("shows other states, other fields and other lists than there are", async () => {
    await using sandbox = await startSandboxCompute();
    const flap = sandbox.weather({ match: "GET /v1/vms/:id", shownStatus: ["RUNNING", "STOPPED"] });
    const seen = [await call(sandbox, `GET ${web}`), await call(sandbox, `GET ${web}`)].map(
      (each) => each.body["status"],
    );
    expect(new Set(seen)).toEqual(new Set(["RUNNING", "STOPPED"]));
    sandbox.clear(flap);
    sandbox.weather({
      match: "GET /v1/vms/:id",
      shownStatus: "MIGRATING",
      without: ["region"],
      extra: { shiny: 1 },
    });
    const { body } = await call(sandbox, `GET ${web}`);
    expect(body).toMatchObject({ status: "MIGRATING", shiny: 1 });
    expect(body).not.toHaveProperty("region");
    sandbox.weather({ match: "GET /v1/projects/*", list: "data" });
    expect((await call(sandbox, "GET /v1/projects/prj-payments/vms")).body["data"]).toHaveLength(3);
  });

  it("slows down, drips, hangs and redirects", async () => {
    await using sandbox = await startSandboxCompute();
    sandbox.weather({ match: "GET /v1/projects", slowMs: 60 });
    const startedAt = performance.now();
    await call(sandbox, "GET /v1/projects");
    expect(performance.now() - startedAt).toBeGreaterThan(50);
    sandbox.weather({ match: `GET ${web}`, redirect: "http://elsewhere.example/" });
    expect((await call(sandbox, `GET ${web}`)).status).toBe(307);
    sandbox.weather({ match: "GET /v1/vms/vm-payments-web-2", hang: "before" });
    const hanging = fails(call(sandbox, "GET /v1/vms/vm-payments-web-2"));
    expect(await sandbox.called("GET /v1/vms/vm-payments-web-2")).toMatchObject([
      { answer: "hung" },
    ]);
    await sandbox.close();
    expect(await hanging).toBe("failed");
  });
});
