// npm run tour: the demo's world without a browser. Plays an on-call story, prints each step as a person would see it, and ends
// with 0 only when every step held.
import { deadlineMs } from "../../src/deadline.ts";
import { messageOf } from "../../src/errors.ts";
import { demoWorld } from "../demo-world.ts";
import { buildWorld, type World } from "../world.ts";
import { steps } from "./steps.ts";
import { createTour, print } from "./tour.ts";

const began = performance.now();
const lines: string[] = [];
const { prepare, slack, ...demo } = demoWorld({ restartExpires: "40s" });
const world = await buildWorld({
  ...demo,
  pace: { ...demo.pace, remedyMs: 2_500 },
  compute: { transitionMs: [900, 1500], consoleMs: 2500 },
  slack: { ...slack, rateLimits: "off", app: { ackTimeoutMs: deadlineMs(3_000) } },
  roles: ["gateway", "worker"],
  prepare: (compute) => {
    prepare(compute);
    addEdge(compute);
  },
  onLog: (line) => {
    lines.push(line);
  },
});

/** Twelve VMs of one kind, for the rollout. */
function addEdge(compute: World["compute"]): void {
  const project = compute.edit.addProject({ name: "edge", type: "TEE_VM", region: "eu-west-1" });
  for (let n = 1; n <= 12; n++) {
    compute.edit.addVm({
      project,
      name: `edge-${String(n).padStart(2, "0")}`,
      status: "RUNNING",
      attested: true,
    });
  }
}

const tour = createTour(world, lines);
let failure: unknown;
try {
  for (const step of steps) await step(tour);
} catch (error) {
  failure = error;
}
await world.close();
if (failure) {
  print(`\nThe tour stopped: ${failure instanceof Error ? failure.message : messageOf(failure)}`);
  const errors = lines.filter((line) => /"level":"error"/.test(line));
  for (const line of errors.slice(-5)) process.stderr.write(line);
  process.exit(1);
}
print(`\nEvery step held, in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
process.exit(0);
