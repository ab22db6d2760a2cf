import { expect, it } from "vitest";
import { version } from "../../src/config/version.ts";
import { checks } from "../../src/start/checks.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld } from "../support/start-world.ts";

it("200 probes at once cost at most one call of Slack", async () => {
  await using world = await startWorld();
  const port = world.processes[0]?.opsPort;
  world.slack.forgetCalls();
  const probe = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status;
  const answers = await Promise.all(Array.from({ length: 200 }, probe));
  expect(new Set(answers)).toEqual(new Set([200]));
  expect(world.slack.calls("auth.test").length).toBeLessThanOrEqual(1);
  await world.vera.types("ops", "/gatehouse status");
  const said = `*Version*: ${version}, Node.js ${process.version}; started `;
  await world.vera.until((seen) => JSON.stringify(seen).includes(said));
});

it("a Slack that limits calls makes no process unready", async () => {
  await using world = await startWorld();
  const port = world.processes[0]?.opsPort;
  world.slack.weather.add({ method: "auth.test", kind: "rate-limited", retryAfter: 30 });
  const limited = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect([limited.status, await limited.text()]).toEqual([200, '{"ok":true}\n']);
  expect(world.slack.calls("auth.test").length).toBeGreaterThan(0);
});

it("says that no worker is running, and a card doesn't say that anything runs before it was sent", async () => {
  await using world = await startWorld({ roles: ["gateway"] });
  await world.olivia.types("ops", "/vm restart web-2");
  await hears(world.olivia, "ops", /Restart[^]*Requested\. The result will be in the thread/);
  await world.olivia.types("ops", "/gatehouse status");
  const without = await hears(world.olivia, "ops", /Work/);
  expect(wordsOf(without)).toMatch(
    /no worker is running, and 1 request open\. Start a worker, or read its log/,
  );
  expect(wordsOf(without)).not.toContain("Everything works");
  const worker = await world.startProcess("worker");
  await hears(world.olivia, "ops", /Restarted web-2/);
  await world.olivia.types("ops", "/gatehouse status");
  await hears(world.olivia, "ops", /1 worker, 0 requests open/);
  // Killed, it leaves its ID, which counts only while it beats
  await worker.close();
  await world.client.sadd(world.key("workers"), "w-killed");
  await world.olivia.types("ops", "/gatehouse status");
  await hears(world.olivia, "ops", /no worker is running, and 0 requests open/);
});

it("whatever makes a process unready is also shown to people and checked by the doctor", () => {
  const needed = checks.filter(({ forReadiness }) => forReadiness);
  expect(needed.map(({ name }) => name)).toEqual(["Slack", "Redis", "Policy"]);
  expect(needed.filter(({ forPeople, fromOutside }) => !forPeople || !fromOutside)).toEqual([]);
});
