import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/log/log.ts";
import { runDoctor } from "../../src/cli/doctor.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { createKeys } from "../../src/redis/redis.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { handedToPrograms, policyTerms } from "../../src/features/index.ts";
import { until } from "../support/until.ts";

const callers = `
sources:
  prometheus: { format: alertmanager }
  grafana: { format: grafana }
services:
  deploy:
    tokens: ["sha256:${"a".repeat(64)}"]
    channel: C01OPS
    propose: [{ operations: [vm.snapshot] }]
  agent: { tokens: ["sha256:${"b".repeat(64)}"] }
`;
const secrets = {
  SOURCE_SECRET_PROMETHEUS: "test-secret-one",
  SOURCE_SECRET_GRAFANA: "test-secret-two test-secret-three",
};

async function doctor(world: TestWorld, env: Record<string, string> = {}, role = "gateway") {
  let said = "";
  const code = await runDoctor([role], {
    ...handedToPrograms,
    env: { ...world.env, ...env },
    write: (text) => void (said += text),
  });
  return { code, said: /^API\n((?: {2}.*\n)+)/m.exec(said)?.[1] };
}

async function statusOf(world: TestWorld): Promise<string> {
  await world.olivia.types("ops", "/gatehouse status");
  const seen = await hears(world.olivia, "ops", /API/);
  return wordsOf(seen).match(/API[^\n]*/)?.[0] ?? "";
}

const usual = await startWorld({
  env: { API_PORT: "0", ...secrets },
  policy: testPolicy + callers,
});
afterAll(() => usual.close());

it("doctor tells Gatehouse's own API from another program on its port, and says when it is off", async () => {
  const own = String(usual.processes[0]?.apiPort);
  expect((await doctor(usual, { API_PORT: own })).said).toBe(
    `  ✓ port ${own}: Gatehouse answers\n  ✓ secrets: there for 2 sources of alerts\n  ✓ no alert yet from prometheus, no alert yet from grafana, no call yet from deploy, no call yet from agent\n`,
  );
  const last = createKeys()("api", "last");
  await usual.client.hset(last, "alerts sources.prometheus", await usual.store.now());
  expect((await doctor(usual, { API_PORT: own })).said).toMatch(
    /✓ last alert from prometheus .+ ago, no alert/,
  );
  const other = createServer((_, response) => response.end("hello"));
  await once(other.listen(0, "127.0.0.1"), "listening");
  const address = other.address();
  const taken = String(typeof address === "object" ? address?.port : "");
  expect((await doctor(usual, { API_PORT: taken })).said).toContain(
    `✗ port ${taken}: another program has it\n    Stop it, or set API_PORT to another port.`,
  );
  other.close();
  expect((await doctor(usual, { API_PORT: taken })).said).toContain(`✓ port ${taken}: free`);
  expect((await doctor(usual, { API_PORT: "" })).said).toBe(
    "  ! off here, and gatehouse.yml names prometheus, grafana, deploy, agent\n    Set API_PORT where they should come in.\n",
  );
  expect((await doctor(usual, {}, "worker")).said).toBeUndefined();
});

it("/gatehouse status says who came in last, and when", async () => {
  const port = usual.processes[0]?.apiPort;
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
  const now = await usual.store.now();
  await usual.client.hset(usual.key("api", "last"), {
    "alerts sources.prometheus": now - 4 * 60_000,
    "reads deploy": now - 60_000,
    "proposals services.deploy": now - 2 * 3_600_000,
  });
  expect(await statusOf(usual)).toMatch(
    /last alert from prometheus 4 min .*ago, no alert yet from grafana, last call from deploy 2 h .*ago, no call yet from agent/,
  );
});

it("a caller over its limit is named in the audit channel, once an hour", async () => {
  const now = await usual.store.now();
  const places = Array.from({ length: 3_000 }, (_, n) => [now, `call-${n}`]);
  await usual.client.zadd(usual.key("rate", "api", "sources.prometheus"), ...places.flat());
  const post = () =>
    fetch(`http://127.0.0.1:${usual.processes[0]?.apiPort}/alerts/prometheus`, {
      method: "POST",
      headers: { authorization: "Bearer test-secret-one" },
      body: "{}",
    });
  for (const answer of [await post(), await post()]) {
    expect(answer.status).toBe(503);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  const words = /sources\.prometheus is at its limit of 3000 calls a minute/;
  await hears(usual.ada, "audit", words);
  await usual.settled();
  const { messages } = usual.ada.seesChannel("audit");
  expect(messages.filter((message) => words.test(wordsOf(message)))).toHaveLength(1);
});

it("/gatehouse status and doctor name a source without a secret, and the log says so at the start", async () => {
  const env = { API_PORT: "0", SOURCE_SECRET_PROMETHEUS: "test-secret-one" };
  await using world = await startWorld({ env, policy: testPolicy + callers });
  const missing = "SOURCE_SECRET_GRAFANA: is missing: set it, or SOURCE_SECRET_GRAFANA_FILE";
  expect(await statusOf(world)).toContain(missing);
  expect(world.lines.join("")).toContain(
    `"event":"api.source-shut","role":"all","why":"${missing}"`,
  );
  const { code, said } = await doctor(world);
  expect(code).toBe(1);
  expect(said).toContain(`✗ ${missing}\n    Until then Gatehouse answers 401`);
  const gone = await doctor(world, { SOURCE_SECRET_GRAFANA_FILE: "/nowhere/secret" });
  expect(gone.said).toContain(
    "SOURCE_SECRET_GRAFANA_FILE: names a file that can't be read (ENOENT)",
  );
  const many = await doctor(world, { SOURCE_SECRET_GRAFANA: "test-secret-a test-secret-b test-c" });
  expect(many.said).toContain("SOURCE_SECRET_GRAFANA: has 3 words");
});

it("secrets of sources are kept out of the log, also one that came with a new policy or a new file", async () => {
  await using world = await startWorld({ roles: [] });
  const file = path.join(path.dirname(world.env["GATEHOUSE_CONFIG"] ?? ""), "secret");
  writeFileSync(file, "test-secret-of-file-1\n");
  world.env["API_PORT"] = "0";
  world.env["SOURCE_SECRET_PROMETHEUS_FILE"] = file;
  world.env["SOURCE_SECRET_GRAFANA"] = "test-secret-four";
  const policy = world.env["GATEHOUSE_CONFIG"] ?? "";
  writeFileSync(policy, `${testPolicy}sources: { prometheus: { format: plain } }\n`);
  const running = await world.startProcess("all");
  await world.slack.connected();
  const lines: string[] = [];
  const log = createLog({ level: "info", write: (line) => lines.push(line) });
  const isHidden = (secret: string) => {
    log.info("said", { why: `it was ${secret}` });
    return !lines.at(-1)?.includes(secret);
  };
  expect(["test-secret-of-file-1", "test-secret-four"].map(isHidden)).toEqual([true, false]);
  writeFileSync(policy, `${testPolicy}${callers}`);
  await running.reload();
  await until(() => isHidden("test-secret-four")).toBe(true);
  expect(world.lines.join("")).toContain("channel C01OPS; notify none; expires 1h; limits");
  // Two, while one replaces the other
  writeFileSync(file, "test-secret-of-file-2 test-secret-of-file-3\n");
  const config = loadConfig({ env: world.env, role: "all", terms: policyTerms });
  expect(config.callerSecret("SOURCE_SECRET_PROMETHEUS").secrets).toEqual([
    "test-secret-of-file-2",
    "test-secret-of-file-3",
  ]);
  await world.olivia.types("ops", "/gatehouse status");
  await hears(world.olivia, "ops", /API/);
  const changed = /config\.file-changed".*"variable":"SOURCE_SECRET_PROMETHEUS"/;
  await until(async () => {
    await world.olivia.types("ops", "/gatehouse status");
    return world.lines.join("");
  }).toMatch(changed);
  expect(["test-secret-of-file-2", "test-secret-of-file-3"].map(isHidden)).toEqual([true, true]);
});
