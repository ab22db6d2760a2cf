import { readFileSync } from "node:fs";
import { SpanKind, context, trace as tracing } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { WorldOptions } from "../../demo/world.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { answering, says } from "../fleet/compute/answering.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const policy = `${testPolicy}approvals: [{ operations: ["vm.restart"], required: 1, expires: 1m }]\n`;

interface Line {
  level: string;
  event: string;
  request?: string;
  interaction?: string;
  trace?: string;
  [field: string]: unknown;
}

const linesOf = (world: TestWorld) => world.lines.map((line) => JSON.parse(line) as Line);

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(exporter)],
});

const spansOf = (trace: string | undefined) =>
  exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === trace);

/** Samples by name and labels, as `gatehouse_frozen` or `gatehouse_requests_total{command="vm stop",end="done"}`. */
async function scrape(world: TestWorld, index = 0): Promise<Map<string, number>> {
  const page = await fetch(`http://127.0.0.1:${world.processes[index]?.opsPort}/metrics`);
  const samples = (await page.text()).split("\n").filter((line) => /^\w/.test(line));
  return new Map(
    samples.map((line) => {
      const cut = line.lastIndexOf(" ");
      return [line.slice(0, cut), Number(line.slice(cut + 1))];
    }),
  );
}

describe("a restart that needed an approval, seen from outside", () => {
  let world: TestWorld;
  let request = "";
  beforeAll(async () => {
    // As an operator's file does that is loaded with --import
    provider.register();
    world = await startWorld({ policy, roles: ["gateway", "worker"] });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.amir, "ops", /Waiting for approval/);
    const open = await scrape(world);
    expect(open.get('gatehouse_open_requests{state="draft"}')).toBe(1);
    await world.amir.presses("Approve");
    request = (await world.ended()).record.id;
    await world.ada.types("ops", "/gatehouse freeze inventory of disks");
    await hears(world.ada, "audit", /froze all changes/);
  });
  afterAll(async () => {
    await world.close();
    tracing.disable();
    context.disable();
  });

  it("leaves a sample for every metric of each role", async () => {
    for (const [index, role] of (["gateway", "worker"] as const).entries()) {
      const samples = [...(await scrape(world, index)).keys()];
      const without = createTelemetry({ role })
        .catalog.map(({ name }) => name)
        .filter((name) => !samples.some((sample) => sample.split("{")[0]?.startsWith(name)));
      // There are no certificates in files here.
      expect(without, role).toEqual(["gatehouse_certificate_end_seconds"]);
    }
  });

  it("is counted where it happened, and the rest says how it stands", async () => {
    const [gateway, worker] = [await scrape(world, 0), await scrape(world, 1)];
    const command = 'command="vm restart"';
    expect(worker.get(`gatehouse_requests_total{${command},end="done"}`)).toBe(1);
    expect(gateway.get(`gatehouse_requests_total{${command},end="done"}`)).toBe(0);
    expect(worker.get(`gatehouse_request_sent_seconds_count{${command}}`)).toBe(1);
    expect(worker.get(`gatehouse_request_settled_seconds_count{${command}}`)).toBe(1);
    const told = "gatehouse_request_told_seconds_count";
    expect((gateway.get(told) ?? 0) + (worker.get(told) ?? 0)).toBe(1);
    expect(gateway.get('gatehouse_ack_seconds_count{command="command"}')).toBe(2);
    for (const samples of [gateway, worker]) {
      expect(samples.get("gatehouse_frozen")).toBe(1);
      expect(samples.get("gatehouse_redis_up")).toBe(1);
      expect(samples.get('gatehouse_open_requests{state="draft"}')).toBe(0);
      expect(samples.get('gatehouse_queue_age_seconds{queue="requests"}')).toBe(0);
    }
    // Sealed within a second
    await until(async () =>
      (await scrape(world)).get("gatehouse_audit_records_total"),
    ).toBeGreaterThan(3);
    expect(gateway.get("gatehouse_slack_connected")).toBe(1);
    expect(worker.has("gatehouse_slack_connected")).toBe(false);
  });

  it("is one line of the log for each move, with the same IDs from the delivery to the result", () => {
    const lines = linesOf(world);
    const taken = lines.find(({ event }) => event === "interaction.taken");
    expect(taken).toMatchObject({ kind: "command", person: "U0OLIVIA" });
    const { interaction, trace } = taken ?? {};
    const moves = lines.filter((line) => line.event === "request.moved");
    expect(moves.map(({ from, to }) => `${String(from)} → ${String(to)}`)).toEqual([
      " → draft",
      "draft → authorized",
      "authorized → sending",
      "sending → accepted",
      "accepted → done",
    ]);
    for (const move of moves) {
      expect(move).toMatchObject({ level: "info", request, interaction, trace });
      expect(move).toMatchObject({ command: "vm restart", target: "web-2", person: "U0OLIVIA" });
      expect(move["why"]).not.toBe("");
    }
    expect(moves[1]).toMatchObject({ by: "U0AMIR" });
    const vote = lines.find(({ event }) => event === "request.voted");
    expect(vote).toMatchObject({
      request,
      person: "U0AMIR",
      vote: "approve",
      result: "authorized",
    });
    expect(vote?.interaction).not.toBe(interaction);
    expect(lines.filter(({ event }) => event === "request.told")).toMatchObject([
      { request, interaction, trace },
    ]);
  });

  it("is one trace from Slack's delivery to Slack's message", async () => {
    const move = linesOf(world).find(({ event }) => event === "request.moved");
    const spans = () => spansOf(move?.trace);
    const names = () => spans().map(({ name }) => name);
    const wanted = [
      "slack command",
      "add interactions.command",
      "handle command",
      "request draft",
      "request authorized",
      "request sending",
      "request accepted",
      "POST /v1/vms/{vm_id}/restart",
      "GET /v1/vms/{vm_id}",
      "slack chat.postMessage",
      "vm restart",
    ];
    await until(names).toEqual(expect.arrayContaining(wanted));
    const known = new Set(spans().map((span) => span.spanContext().spanId));
    const roots = spans().filter(({ parentSpanContext }) => parentSpanContext === undefined);
    expect(roots).toMatchObject([{ name: "slack command", kind: SpanKind.SERVER }]);
    const orphans = spans().filter(
      ({ parentSpanContext }) => parentSpanContext && !known.has(parentSpanContext.spanId),
    );
    expect(orphans.map(({ name }) => name)).toEqual([]);
  });

  it("is followed by a warning for the freeze and one for the thaw, with who and why", async () => {
    await world.ada.types("ops", "/gatehouse thaw");
    await until(() =>
      linesOf(world).filter(({ event }) => event.startsWith("changes.")),
    ).toMatchObject([
      { level: "warn", event: "changes.frozen", reason: "inventory of disks", person: "U0ADA" },
      { level: "warn", event: "changes.thawed", person: "U0ADA" },
    ]);
  });
});

it("a request that waits for nobody is one trace: the job of its step with its wait, and messages below what noted them", async () => {
  provider.register();
  await using world = await startWorld({ roles: ["gateway", "worker"] });
  await world.olivia.types("ops", "/vm restart web-2");
  await world.ended();
  const move = linesOf(world).find(({ event }) => event === "request.moved");
  const parentsOf = (name: string) => {
    const spans = spansOf(move?.trace);
    const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
    return spans
      .filter((span) => span.name === name)
      .map(({ parentSpanContext }) => names.get(parentSpanContext?.spanId ?? ""));
  };
  await until(() => parentsOf("slack chat.postMessage")).toContain("handle command");
  expect(parentsOf("process requests")).toEqual(["add requests.step"]);
  expect(parentsOf("add requests.step")).toEqual(["handle command"]);
  expect(parentsOf("POST /v1/vms/{vm_id}/restart")).toEqual(["process requests"]);
});

describe("a compute service that can't be read", () => {
  const rejects: WorldOptions = {
    prepare: (compute) => compute.weather({ match: "reads", status: 401 }),
  };
  const untrusted = async (): Promise<WorldOptions> => {
    const pem = new URL("../fleet/compute/certificates/localhost.pem", import.meta.url);
    const server = await answering(says([]), readFileSync(pem, "utf8"));
    onTestFinished(() => server[Symbol.asyncDispose]());
    return { env: { COMPUTE_API_URL: server.url } };
  };

  it.each([
    ["it rejects the key", () => rejects, "refused", /\(401\)\. Check COMPUTE_API_KEY\./],
    ["its certificate isn't trusted", untrusted, "unreachable", /its certificate or the TLS/],
    [
      "it isn't there",
      () => ({ env: { COMPUTE_API_URL: "http://127.0.0.1:9" } }),
      "unreachable",
      /the connection was refused/,
    ],
  ] as const)(
    "because %s: names grow old from the start on, calls are counted, /gatehouse status says why",
    async (_why, options, outcome, words) => {
      await using world = await startWorld(await options());
      await until(async () =>
        (await scrape(world)).get("gatehouse_inventory_age_seconds"),
      ).toBeGreaterThan(0.2);
      const calls = `gatehouse_compute_calls_total{endpoint="GET /v1/projects",outcome="${outcome}"}`;
      expect((await scrape(world)).get(calls)).toBeGreaterThan(0);
      await world.olivia.types("ops", "/gatehouse status");
      const status = wordsOf(await hears(world.olivia, "ops", /Compute service:/));
      const line = status.split("\n").find((one) => one.includes("Compute service"));
      expect(line).toMatch(/^⚠️ .*never read/);
      expect(line).toMatch(words);
    },
  );
});
