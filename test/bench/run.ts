import { availableParallelism, loadavg } from "node:os";
import { measureCpu } from "./cpu.ts";
import { allHold, type Figure, renderFigures } from "./figure.ts";
import { measureIdle } from "./idle.ts";
import { measureInventory } from "./inventory.ts";
import { measureMemory } from "./memory.ts";
import { measureRestart } from "./restart.ts";
import { measureShipped, measureShippedYear } from "./shipped.ts";
import { measureStorm } from "./storm.ts";
import { measureThroughput } from "./throughput.ts";
import { measureTold } from "./told.ts";
import { measureTroubles } from "./troubles.ts";
import { measureWaiting } from "./waiting.ts";
import { measureYear } from "./year.ts";

/**
 * Measures what a person or an operator feels, and prints docs/figures.md; with the names of some parts, their rows alone. Ends
 * with 1 when a bound doesn't hold.
 */
const parts: Record<string, () => Promise<readonly Figure[]>> = {
  restart: measureRestart,
  told: measureTold,
  throughput: measureThroughput,
  cpu: measureCpu,
  memory: measureMemory,
  year: measureYear,
  idle: measureIdle,
  waiting: measureWaiting,
  inventory: measureInventory,
  storm: measureStorm,
  troubles: measureTroubles,
};

/** Measured only by name: they take a Docker engine, and an hour. */
const elsewhere: typeof parts = { shipped: measureShipped, "shipped-year": measureShippedYear };

const [load = 0] = loadavg();
const wanted = process.argv.slice(2);
const all = { ...parts, ...elsewhere };
const unknown = wanted.filter((name) => !(name in all));
if (unknown.length > 0)
  throw new Error(`${unknown.join(", ")}: the parts are ${Object.keys(all).join(", ")}`);
const figures: Figure[] = [];
let isBroken = false;
for (const [name, measure] of Object.entries(wanted.length > 0 ? all : parts)) {
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
const page = `# Figures

What a person or an operator feels, each with its bound. \`npm run -s bench\` measures it, prints this page, and ends with 1 when a
bound is exceeded. Measured on ${day} on one machine with ${availableParallelism()} cores and a load of ${load.toFixed(1)} before (Node.js
${process.version}); \`×\` is against a peer in the same run.

`;
process.stdout.write(`${wanted.length > 0 ? "" : page}${renderFigures(figures)}\n`);
process.exit(!isBroken && allHold(figures) ? 0 : 1);
