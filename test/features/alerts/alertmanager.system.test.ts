import { describe, expect, it } from "vitest";
import { freePort } from "../../../sandbox/ensure-redis.ts";
import { createRandom } from "../../../sandbox/random.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { programOf } from "../../support/programs.ts";
import { testPolicy } from "../../support/start-world.ts";
import { liveThrough, startWire } from "./alertmanager-life.ts";
import { startPeers } from "./alertmanager-peers.ts";
import { sources, startAlertWorld, testSecret } from "./sending.ts";
import { until } from "../../support/until.ts";

const program = programOf("prometheus-alertmanager");

/**
 * How long the random events last (minutes). CONTRIBUTING.md says how to run an hour of them, and
 * how to set their seed.
 */
const minutes = Number(process.env["ALERTMANAGER_MINUTES"] ?? "0.2");
const seed = Number(process.env["ALERTMANAGER_SEED"] ?? "1");

describe.skipIf(program === undefined)("the real Alertmanager, two peers", () => {
  it("fires, groups, ends, and tells what happened while the gateway was down; nothing is lost, nothing is told twice", async () => {
    const apiPort = await freePort();
    await using world = await startAlertWorld({ env: { API_PORT: String(apiPort) } });
    const url = `http://127.0.0.1:${apiPort}/alerts/prometheus`;
    await using peers = await startPeers(program ?? "", [{ name: "gatehouse", url }]);
    const began = new Date(Date.now() - 60_000);
    const tell = (name: string, vm: string, endsAt?: Date) =>
      peers.post([{ name, vm, startsAt: began, endsAt, labels: { severity: "critical" } }]);
    await tell("HighCpu", "web-2");
    await tell("HighCpu", "db-1");
    await hears(world.olivia, "ops", /HighCpu on db-1, web-2[^]*2 alerts firing/);

    await world.processes[0]?.close();
    await tell("DiskFull", "web-2");
    await tell("HighCpu", "db-1", new Date());
    await until(peers.failed).toBeGreaterThan(1);
    await world.startProcess("all");
    await hears(world.olivia, "ops", /🔥 DiskFull on web-2/);
    await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /);

    await tell("HighCpu", "web-2", new Date());
    await tell("DiskFull", "web-2", new Date());
    await hears(world.olivia, "ops", /✅ HighCpu on db-1, web-2 ended/);
    await hears(world.olivia, "ops", /✅ DiskFull on web-2 ended/);
    const words = () => world.olivia.seesChannel("ops").messages.map(wordsOf);
    await until(() => words().filter((one) => /^✅ .* ended after .*\.$/.test(one))).toHaveLength(
      2,
    );
    const cards = () => words().filter((one) => /^✅ (HighCpu|DiskFull) .*\n/.test(one));
    await until(cards).toHaveLength(2);
    expect(words().filter((one) => /🔥 Fires again/.test(one))).toEqual([]);
  });

  it("agrees with Gatehouse on what fires after random events: refires, silences, max_alerts, retries, late copies, a peer that is away", async () => {
    const apiPort = await freePort();
    await using world = await startAlertWorld({
      policy: `${testPolicy}${sources}  limited: { format: alertmanager, channel: C01OPS }\n`,
      env: { API_PORT: String(apiPort), SOURCE_SECRET_LIMITED: testSecret },
    });
    await using wire = await startWire(apiPort, createRandom(seed + 1));
    await using peers = await startPeers(program ?? "", [
      { name: "gatehouse", url: `${wire.url}/alerts/prometheus` },
      { name: "limited", url: `${wire.url}/alerts/limited`, maxAlerts: 2 },
    ]);
    const isLong = minutes > 1;
    const counts = await liveThrough({
      world,
      peers,
      wire,
      seed,
      forMs: minutes * 60_000,
      agreeWithinMs: 500_000,
      onAgreed: (line) => isLong && console.log(line),
    });
    if (isLong) console.log(counts);
    expect(counts["agreed"]).toBeGreaterThan(0);
    expect(counts["deliveries"]).toBeGreaterThan(0);
  });
});
