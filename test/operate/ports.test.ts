import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { stretchDeadlines } from "../../src/deadline.ts";
import { silentLog } from "../../src/log/log.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { type HealthOptions, startHealth } from "../../src/operate/health.ts";
import { until } from "../support/until.ts";

async function server(options: Partial<HealthOptions> = {}) {
  const telemetry = createTelemetry();
  const health = await startHealth({
    port: 0,
    host: "127.0.0.1",
    log: silentLog(),
    figures: telemetry.render,
    alive: () => undefined,
    ready: async () => undefined,
    ...options,
  });
  const get = async (path: string, method = "GET") => {
    const response = await fetch(`http://127.0.0.1:${health.port}${path}`, { method });
    return {
      status: response.status,
      text: await response.text(),
      type: response.headers.get("content-type"),
    };
  };
  return { get, telemetry, port: health.port, [Symbol.asyncDispose]: () => health.close() };
}

describe("/healthz", () => {
  it("says whether this process should live on", async () => {
    let problem: string | undefined;
    await using web = await server({ alive: () => problem });
    expect(await web.get("/healthz")).toMatchObject({ status: 200, text: '{"ok":true}\n' });
    problem = "the queue stands still";
    expect(await web.get("/healthz")).toMatchObject({
      status: 503,
      text: expect.stringContaining(problem),
    });
  });
});

describe("/readyz", () => {
  it("is 503 with the reason while something is missing", async () => {
    await using web = await server({ ready: async () => "Redis does not answer" });
    expect(await web.get("/readyz")).toMatchObject({
      status: 503,
      text: '{"ok":false,"problem":"Redis does not answer"}\n',
      type: "application/json; charset=utf-8",
    });
  });

  it("is a no when the check itself fails", async () => {
    await using web = await server({ ready: () => Promise.reject(new Error("boom")) });
    expect(await web.get("/readyz")).toMatchObject({
      status: 503,
      text: expect.stringContaining("boom"),
    });
  });

  it("checks once for 200 probes at once, and again for the next", async () => {
    const { promise: hold, resolve: release } = Promise.withResolvers<undefined>();
    let checks = 0;
    let isRead = false;
    await using web = await server({
      ready: () => {
        checks += 1;
        return hold;
      },
      alive: () => void (isRead = true),
    });
    const socket = connect(web.port, "127.0.0.1");
    let said = "";
    socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: here\r\n\r\n`;
    socket.write(`${ask("/readyz").repeat(200)}${ask("/healthz")}`);
    // The last of them was read, so all have come
    await until(() => isRead);
    release(undefined);
    await until(() => said.split("HTTP/1.1 200 OK").length - 1).toBe(201);
    socket.destroy();
    expect(checks).toBe(1);
    await web.get("/readyz");
    expect(checks).toBe(2);
  });

  it("is a no after two seconds when the check hangs", async () => {
    stretchDeadlines(0.05);
    await using web = await server({ ready: () => new Promise(() => {}) });
    expect(await web.get("/readyz")).toMatchObject({
      status: 503,
      text: expect.stringContaining("longer than 2 s"),
    });
    stretchDeadlines(30);
  });
});

describe("/metrics", () => {
  it("is Prometheus text of this world alone", async () => {
    await using web = await server();
    await using other = await server();
    web.telemetry.acked.observe({ command: "vm restart" }, 0.004);
    web.telemetry.computeCalls.inc({ endpoint: "GET /v1/vms/{vm_id}", outcome: "ok" });
    web.telemetry.shared.frozen.set(1);
    expect((await web.get("/metrics")).text).not.toContain("gatehouse_frozen");
    web.telemetry.knowShared(true);
    const page = await web.get("/metrics");
    expect(page.type).toContain("text/plain");
    expect(page.text).toContain('gatehouse_ack_seconds_bucket{le="0.005",command="vm restart"} 1');
    expect(page.text).toContain(
      'gatehouse_compute_calls_total{endpoint="GET /v1/vms/{vm_id}",outcome="ok"} 1',
    );
    expect(page.text).toContain("gatehouse_frozen 1");
    expect(page.text).toContain("process_cpu_seconds_total");
    expect((await other.get("/metrics")).text).not.toContain("vm restart");
  });
});

describe("the web server", () => {
  it("answers 404 elsewhere and 405 to other methods", async () => {
    await using web = await server();
    expect(await web.get("/")).toMatchObject({ status: 404 });
    expect(await web.get("/healthz", "POST")).toMatchObject({ status: 405 });
    expect(await web.get("/healthz?x=1", "HEAD")).toMatchObject({ status: 200, text: "" });
  });

  it("says that its port is taken instead of starting", async () => {
    await using web = await server();
    await expect(server({ port: web.port })).rejects.toThrow(
      "PORT: the port can't be opened: another process has it",
    );
  });

  it("closes although somebody keeps a connection open", async () => {
    const web = await server();
    const socket = connect(web.port, "127.0.0.1");
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.write("GET /healthz HTTP/1.1\r\n");
    await web[Symbol.asyncDispose]();
    socket.destroy();
  });

  it("answers a second time on a connection that is there", async () => {
    await using web = await server();
    const socket = connect(web.port, "127.0.0.1");
    let said = "";
    socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const answers = () => said.split("HTTP/1.1 200 OK").length - 1;
    for (const count of [1, 2]) {
      socket.write("GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n");
      await until(answers).toBe(count);
    }
    socket.destroy();
  });
});
