import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { ApiProblem, type Route, createApi, jsonOf, unauthorized } from "../../src/api/server.ts";
import { createLog, silentLog } from "../../src/log/log.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { createJournal } from "../../src/core/request/journal.ts";
import { startWebServer } from "../../src/operate/web-server.ts";
import { stretchDeadlines } from "../../src/deadline.ts";
import { privateRedis, testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

const kind = z.object({ name: z.string() });
const secret = "Bearer test-secret-one";

/** An API with a route that keeps what it is given, as those of alerts and proposals do, and one that waits. */
async function openApi(redis: Awaited<ReturnType<typeof testRedis>>) {
  const { redis: client, key } = redis;
  const lines: string[] = [];
  const limited: string[] = [];
  const telemetry = createTelemetry();
  const log = createLog({ level: "debug", write: (line) => lines.push(line) });
  const keep =
    (perMinute: number): Route["handle"] =>
    async ({ headers, readBody }, named) => {
      if (headers.authorization !== secret) throw unauthorized();
      await named("prometheus", perMinute);
      const read = kind.safeParse(jsonOf(await readBody()));
      if (!read.success)
        throw new ApiProblem(400, "A name is missing.", "Send a name.", { field: "name" });
      await client.set(key("kept"), read.data.name);
      return { status: 202, body: { id: "a-1" } };
    };
  let waiting = 0;
  const routes: Route[] = [
    { name: "alerts", path: /^\/alerts$/, methods: ["POST"], handle: keep(1_000) },
    { name: "alerts", path: /^\/few$/, methods: ["POST"], handle: keep(2) },
    { name: "alerts", path: /^\/few-503$/, methods: ["POST"], busy: 503, handle: keep(2) },
    {
      name: "reads",
      path: /^\/vms\/[^/]+$/,
      methods: ["GET"],
      handle: async ({ path }) => ({ status: 200, body: { path: decodeURIComponent(path) } }),
    },
    {
      name: "mcp",
      path: /^\/refused$/,
      methods: ["POST"],
      async handle(_, named) {
        await named("agent", 10);
        return { status: 406, body: { jsonrpc: "2.0", error: { code: -32_000 } } };
      },
    },
    {
      name: "reads",
      path: /^\/wait$/,
      methods: ["GET"],
      async handle({ signal }) {
        waiting += 1;
        if (!signal.aborted) await once(signal, "abort");
        waiting -= 1;
        return { status: 200, body: { state: "running" } };
      },
    },
    {
      name: "reads",
      path: /^\/bug$/,
      methods: ["GET"],
      handle: () => Promise.reject(new Error("a bug with test-secret-one in it")),
    },
  ];
  const store = createJournal(client, key);
  const onLimit = async (caller: string) => void limited.push(caller);
  const opened = createApi({ routes, store, telemetry, onLimit, log });
  const { port, close } = await startWebServer(
    { port: 0, host: "127.0.0.1", log },
    opened.listener,
  );
  const stop = async () => {
    opened.stop();
    await close();
  };
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, init);
  const post = (body: BodyInit, path = "/alerts") =>
    call(path, { method: "POST", body, headers: { authorization: secret } });
  return {
    port,
    lines,
    limited,
    telemetry,
    store,
    stop,
    call,
    post,
    kept: () => client.get(key("kept")),
    waiting: () => waiting,
    [Symbol.asyncDispose]: stop,
  };
}

/** What it says is collected; resolves with everything when the other side ends. */
async function dial(port: number, words = "") {
  const socket = connect(port, "127.0.0.1");
  let said = "";
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(socket, "connect");
  socket.write(words);
  const closed = new Promise<string>((resolve) => void socket.on("close", () => resolve(said)));
  return { socket, said: () => said, closed, [Symbol.dispose]: () => void socket.destroy() };
}

const head = (path: string, ...lines: string[]) =>
  [`POST ${path} HTTP/1.1`, "host: api", `authorization: ${secret}`, ...lines, "", ""].join("\r\n");
const good = '{"name":"web-2"}';
const goodCall = head("/alerts", `content-length: ${good.length}`) + good;

async function problem(answer: Response) {
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  const body = (await answer.json()) as Record<string, unknown>;
  expect(body).toMatchObject({ type: "about:blank", status: answer.status });
  return [answer.status, body["title"]];
}

describe("a call of the API", () => {
  it("is answered once what it brings is written", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    const answer = await api.post(good);
    expect([answer.status, await answer.json()]).toEqual([202, { id: "a-1" }]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await api.kept()).toBe("web-2");
  });

  it("is a problem where nothing is at its address or takes its method, and tells which methods are taken", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    expect(await problem(await api.call("/other"))).toEqual([
      404,
      "There is nothing at this address.",
    ]);
    for (const method of ["GET", "DELETE", "OPTIONS"]) {
      const wrong = await api.call("/alerts", { method });
      expect(wrong.headers.get("allow")).toBe("POST");
      expect(await problem(wrong)).toEqual([405, "This address takes other methods."]);
    }
    const page = await api.call("/vms/web-2", { method: "HEAD" });
    expect([page.status, await page.text()]).toEqual([200, ""]);
  });

  it("counts by the path as it was sent, which a proxy in front decided by", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    for (const path of [
      "/alerts/%2e%2e/vms/a",
      "/alerts/../vms/a",
      "/vms/a/../a",
      "/vms/a/.%2e/a?x",
      "//api/vms/a",
      "*",
    ]) {
      using raw = await dial(api.port, `GET ${path} HTTP/1.1\r\nhost: d\r\n\r\n`);
      await until(raw.said).toContain("HTTP/1.1 404");
    }
    expect(await (await api.call("/vms/web%202?x=1")).json()).toMatchObject({
      path: "/vms/web 2",
    });
  });

  it("gets the same 401 without the right secret, whatever is wrong", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    for (const authorization of ["", "Bearer test-secret-two", "Basic dGVzdA=="]) {
      const headers = authorization === "" ? {} : { authorization };
      const answer = await api.call("/alerts", { method: "POST", body: "{", headers });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(await answer.json()).toEqual({
        type: "about:blank",
        title: "Unauthorized",
        status: 401,
      });
    }
    const counted = 'gatehouse_api_calls_total{route="alerts",outcome="401"} 3';
    expect((await api.telemetry.render()).text).toContain(counted);
  });

  it.each([
    ["not UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), "The body is not UTF-8."],
    ["cut", '{"name":"we', "The body is not JSON, or was cut."],
    ["empty", "", "The body is not JSON, or was cut."],
    [
      "nested without end",
      `${'{"a":['.repeat(20_000)}${"]}".repeat(20_000)}`,
      "The body is nested deeper than 20 levels.",
    ],
    ["null", "null", "A name is missing."],
    ["a list", "[]", "A name is missing."],
    ["of another type", '{"name":{"__proto__":null}}', "A name is missing."],
  ])("is refused when its body is %s, and nothing is written", async (_, body, title) => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    expect(await problem(await api.post(body))).toEqual([400, title]);
    expect(await api.kept()).toBeNull();
  });

  it("is refused when its body is larger than 256 KB, with its length given or without end", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    const whole = (size: number) => `{"name":"${"x".repeat(size - 11)}"}`;
    expect((await api.post(whole(256 * 1024))).status).toBe(202);
    const tooLarge = [413, "The body is larger than 256 KB."];
    expect(await problem(await api.post(whole(256 * 1024 + 1)))).toEqual(tooLarge);
    using raw = await dial(api.port, head("/alerts", "transfer-encoding: chunked"));
    const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
    const more = setInterval(() => raw.socket.write(chunk), 2);
    // It is told, and then the connection ends although more comes
    expect(await raw.closed).toMatch(/^HTTP\/1\.1 413 [^]*larger than 256 KB/);
    clearInterval(more);
  });

  it("reaches no route when it is no HTTP, or has two lengths", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    const both = head("/alerts", "content-length: 5", "transfer-encoding: chunked");
    for (const words of [`${both}0\r\n\r\n`, "\u0016\u0003\u0001", "GET / HTTP/1.1\r\n\r\n"]) {
      using raw = await dial(api.port, words);
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 400 /);
    }
    using large = await dial(api.port, head("/alerts", `x: ${"y".repeat(20_000)}`));
    expect(await large.closed).toMatch(/^HTTP\/1\.1 431 /);
    expect(api.lines.filter((line) => line.includes('"event":"api.'))).toEqual([]);
  });

  it("writes nothing when it ends before its body does", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using raw = await dial(api.port, head("/alerts", "content-length: 100") + good);
    raw.socket.destroySoon();
    const refused = '"why":"The body was cut."';
    await until(() => api.lines.join("")).toContain(refused);
    expect(api.lines.join("")).not.toContain('"level":"error"');
    expect(await api.kept()).toBeNull();
  });

  it("is answered over HTTP/1.0, after Expect: 100-continue, with a body for GET, and in order in a pipeline", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using old = await dial(api.port, goodCall.replace("HTTP/1.1", "HTTP/1.0"));
    expect(await old.closed).toMatch(/^HTTP\/1\.1 202 [^]*{"id":"a-1"}\n$/);
    using careful = await dial(
      api.port,
      head("/alerts", "expect: 100-continue", `content-length: ${good.length}`),
    );
    await until(careful.said).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    careful.socket.write(good);
    await until(careful.said).toContain("HTTP/1.1 202");
    using odd = await dial(
      api.port,
      "GET /vms/a HTTP/1.1\r\nhost: d\r\ncontent-length: 3\r\n\r\nabc",
    );
    await until(odd.said).toContain('"path":"/vms/a"');
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: d\r\n\r\n`;
    using line = await dial(api.port, get("/vms/a") + goodCall + get("/other") + get("/vms/b"));
    await until(line.said).toMatch(/vms\/a[^]*202[^]*404[^]*vms\/b/);
  });

  it("may follow a refused one on the same connection", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using raw = await dial(api.port, goodCall.replace(good, '{"nam_":"web-2"}'));
    await until(raw.said).toContain("HTTP/1.1 400");
    raw.socket.write(goodCall);
    await until(raw.said).toContain("HTTP/1.1 202");
  });
});

describe("a caller of the API", () => {
  it("has so many calls a minute, and is told when the next one has room", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    const statuses = [];
    for (let n = 0; n < 3; n += 1) statuses.push((await api.post(good, "/few")).status);
    expect(statuses).toEqual([202, 202, 429]);
    const over = await api.post(good, "/few");
    expect(Number(over.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await problem(over)).toEqual([429, "Too many calls within a minute."]);
    expect((await api.post(good, "/few-503")).status).toBe(503);
    expect(api.limited).toEqual(["prometheus", "prometheus", "prometheus"]);
  });

  it("is in the log by name, and nothing of what it sent is", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    await api.post(good);
    await api.post('{"nam_":"web-2"}');
    await api.call("/bug");
    const logged = api.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged).toMatchObject([
      { level: "info", event: "api.answered", route: "alerts", caller: "prometheus", status: 202 },
      {
        level: "warn",
        event: "api.refused",
        caller: "prometheus",
        status: 400,
        field: "name",
      },
      { level: "error", event: "api.refused", route: "reads", status: 500 },
    ]);
    expect(api.lines.join("")).not.toMatch(/web-2|nam_|A name|Bearer/);
    const bug = await api.call("/bug");
    expect(await problem(bug)).toEqual([500, "Gatehouse failed; its log says why."]);
  });

  it("counts as refused where its own protocol says so, and that isn't its last call", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    const answer = await api.call("/refused", { method: "POST" });
    expect([answer.status, await answer.json()]).toMatchObject([406, { jsonrpc: "2.0" }]);
    const metrics = (await api.telemetry.render()).text;
    expect(metrics).toContain('gatehouse_api_calls_total{route="mcp",outcome="406"} 1');
    await api.post(good);
    await until(async () => [...(await api.store.apiCalls()).keys()]).toEqual([
      "alerts prometheus",
    ]);
  });

  it("is remembered with its last call, and never waits or fails for that", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    await api.post(good);
    await until(async () => [...(await api.store.apiCalls()).keys()]).toEqual([
      "alerts prometheus",
    ]);
    await redis.redis.set(redis.key("api", "last"), "of another type");
    expect((await api.post(good)).status).toBe(202);
    await until(() => api.lines.join("")).toContain("api.call-not-noted");
  });
});

describe("an API without Redis", () => {
  it("answers 503 and writes nothing, and takes the next call once Redis is back", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    const key = createKeys("test-api");
    const own = {
      redis,
      key,
      url: server.url,
      [Symbol.asyncDispose]: async () => redis.disconnect(),
    };
    await using _ = own;
    await using api = await openApi(own);
    // It is there, and takes nothing
    await redis.config("SET", "maxmemory", "1");
    const answer = await api.post(good);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(await problem(answer)).toEqual([
      503,
      "Gatehouse can't store anything now; repeat the call.",
    ]);
    await redis.config("SET", "maxmemory", "0");
    expect(await api.kept()).toBeNull();
    expect((await api.post(good)).status).toBe(202);
    await server.kill();
    expect((await api.post('{"name":"web-3"}')).status).toBe(503);
  });
});

describe("the connections of the API", () => {
  const starts = ["POST /alerts HTTP/1.1\r\n", head("/alerts", "content-length: 1000")];

  it("end when a body takes longer than 4 s, or headers longer than 5 s, though something of them comes", async () => {
    // A tenth of that. Nothing here ends in time, however slow the machine is
    stretchDeadlines(0.1);
    onTestFinished(() => stretchDeadlines(30));
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using body = await dial(api.port, head("/alerts", "content-length: 1000"));
    using headers = await dial(api.port, "POST /alerts HTTP/1.1\r\n");
    const drip = setInterval(() => {
      body.socket.write(" ");
      headers.socket.write("x: y\r\n");
    }, 20);
    const told = await Promise.all([body.closed, headers.closed]);
    clearInterval(drip);
    expect(told[0]).toMatch(/^HTTP\/1\.1 408 [^]*took too long to arrive/);
    expect(told[1]).toMatch(/^HTTP\/1\.1 408 /);
    for (const words of starts) {
      using silent = await dial(api.port, words);
      expect(await silent.closed).toMatch(/^HTTP\/1\.1 408 /);
    }
  });

  it("are 1,024 at most, and others are answered beside 1,023 whose headers or bodies never end", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    const more = async (n: number) => dial(api.port, starts[n % 2]);
    const open = await Promise.all(Array.from({ length: 1_023 }, (_, n) => more(n)));
    using last = await dial(api.port, goodCall.replace("HTTP/1.1", "HTTP/1.0"));
    expect(await last.closed).toMatch(/^HTTP\/1\.1 202 /);
    open.push(await more(1));
    using late = await dial(api.port, goodCall);
    expect(await late.closed).toBe("");
    for (const { socket } of open) socket.destroy();
    await until(async () => (await api.post(good)).status).toBe(202);
  });
});

describe("an API that closes", () => {
  it("takes no more calls, and lets what waits end with a state at once", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using first = await dial(api.port, goodCall);
    await until(first.said).toContain("202");
    const waits = api.call("/wait");
    await until(api.waiting).toBe(1);
    const stopped = api.stop();
    const answer = await waits;
    expect([answer.status, await answer.json()]).toEqual([200, { state: "running" }]);
    expect(answer.headers.get("connection")).toBe("close");
    await stopped;
    expect(await first.closed).not.toContain("503");
    await expect(api.post(good)).rejects.toThrow();
  });

  it("ends what waits when its caller hangs up", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using raw = await dial(api.port, "GET /wait HTTP/1.1\r\nhost: d\r\n\r\n");
    await until(api.waiting).toBe(1);
    raw.socket.destroy();
    await until(api.waiting).toBe(0);
  });

  it("still takes a call whose body was arriving", async () => {
    await using redis = await testRedis();
    await using api = await openApi(redis);
    using other = await dial(
      api.port,
      head("/alerts", "expect: 100-continue", "content-length: 16"),
    );
    await until(other.said).toContain("100 Continue");
    const stopped = api.stop();
    other.socket.write(good);
    expect(await other.closed).toMatch(/HTTP\/1\.1 202 /);
    await stopped;
    expect(await api.kept()).toBe("web-2");
  });
});
