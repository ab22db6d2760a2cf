import { cpus, loadavg } from "node:os";
import { measureAcks } from "./ack.ts";
import { measureAttesting } from "./attest.ts";
import { measureCpu } from "./cpu.ts";
import { measureDemo } from "./demo-start.ts";
import { type Figure, holds, renderFigures } from "./figure.ts";
import { measureFleet, measureWaiting } from "./fleet.ts";
import { measureInventory } from "./inventory-figures.ts";
import { measureRefreshAndDigest } from "./refresh.ts";
import { measureRestart } from "./restart.ts";
import { measureIdle } from "./idle.ts";
import { measureRollouts } from "./rollouts.ts";
import { measureStorm } from "./storm.ts";
import { measureThroughput } from "./throughput.ts";
import { measureAfterBurst, measureTold } from "./told.ts";
import { measureVerifying } from "./verify.ts";

// npm run bench: measures what design and issues bound, prints the table of docs/figures.md, ends with 1 when a bound doesn't hold.
const parts: Record<string, () => Promise<readonly Figure[]>> = {
  restart: measureRestart,
  told: measureTold,
  cpu: measureCpu,
  burst: measureAfterBurst,
  storm: measureStorm,
  idle: measureIdle,
  demo: measureDemo,
  socket: () => measureAcks("socket", 10),
  http: () => measureAcks("http", 10),
  throughput: measureThroughput,
  fleet: measureFleet,
  waiting: measureWaiting,
  rollouts: measureRollouts,
  inventory: measureInventory,
  refresh: measureRefreshAndDigest,
  attest: measureAttesting,
  verify: async () => measureVerifying(),
};

const [load = 0] = loadavg();
const wanted = process.argv.slice(2);
const figures: Figure[] = [];
let isBroken = false;
for (const [name, measure] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const began = performance.now();
  try {
    figures.push(...(await measure()));
  } catch (error) {
    isBroken = true;
    console.error(`${name}:`, error);
  }
  process.stderr.write(`${name}: ${((performance.now() - began) / 1000).toFixed(0)} s\n`);
}
const day = new Date().toISOString().slice(0, 10);
process.stdout.write(
  `Measured on ${day}, ${cpus().length} cores with a load of ${load.toFixed(1)} before, Node ${process.version}.\n\n${renderFigures(figures)}\n`,
);
process.exit(!isBroken && figures.every(holds) ? 0 : 1);
