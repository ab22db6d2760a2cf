import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

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
  afterAll(() => world.close());

  it("leaves a sample for every metric of each role", async () => {
    for (const [index, role] of (["gateway", "worker"] as const).entries()) {
      const samples = [...(await scrape(world, index)).keys()];
      const without = createTelemetry({ role })
        .catalog.map(({ name }) => name)
        .filter((name) => !samples.some((sample) => sample.split("{")[0]?.startsWith(name)));
      expect(without, role).toEqual([]);
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
      expect(samples.get("gatehouse_audit_records_total")).toBeGreaterThan(3);
      expect(samples.get('gatehouse_queue_age_seconds{queue="requests"}')).toBeLessThan(60);
    }
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
    expect(vote).toMatchObject({ request, person: "U0AMIR", vote: "approve", is: "authorized" });
    expect(vote?.interaction).not.toBe(interaction);
    expect(lines.filter(({ event }) => event === "request.told")).toMatchObject([
      { request, interaction, trace },
    ]);
  });

  it("is followed by a warning for the freeze and one for the thaw, with who and why", async () => {
    await world.ada.types("ops", "/gatehouse thaw");
    await expect
      .poll(() => linesOf(world).filter(({ event }) => event.startsWith("changes.")))
      .toMatchObject([
        { level: "warn", event: "changes.frozen", reason: "inventory of disks", person: "U0ADA" },
        { level: "warn", event: "changes.thawed", person: "U0ADA" },
      ]);
  });
});

describe("a compute service that rejects the key", () => {
  it("makes the age of the names grow from the start on, is counted, and /gatehouse status says why", async () => {
    await using world = await startWorld({
      prepare: (compute) => compute.weather({ match: "reads", status: 401 }),
    });
    await expect
      .poll(async () => (await scrape(world)).get("gatehouse_inventory_age_seconds"))
      .toBeGreaterThan(0.2);
    const samples = await scrape(world);
    const refused = 'gatehouse_compute_calls_total{endpoint="GET /v1/projects",outcome="refused"}';
    expect(samples.get(refused)).toBeGreaterThan(0);
    await world.olivia.types("ops", "/gatehouse status");
    const status = wordsOf(await hears(world.olivia, "ops", /Compute service:/));
    expect(status).toMatch(/⚠️ Compute service: .*\(401\)\. Check COMPUTE_API_KEY\..*never read/);
  });
});
