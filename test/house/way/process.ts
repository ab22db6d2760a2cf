import { setTimeout as sleep } from "node:timers/promises";
import { takeCoverage } from "node:v8";
import { demoWorld } from "../../../sandbox/demo-world.ts";
import { startWorld } from "../../../sandbox/world.ts";

// One process with both roles, over HTTP, under the demo policy. Arguments: what Olivia types in #ops after a quiet time, and what
// she is told then. V8 writes three times what ran: in the quiet time, its start included; then; and at the stop.
const typed = process.argv[2] ?? "";
const answer = process.argv[3] ?? "";
/** All that comes back by itself is there in the quiet time. */
const quietMs = 9_000;
const mostMs = 30_000;

const world = await startWorld({ ...demoWorld(), receive: "http" });
// Evidence would bring the verifier along
world.compute.edit.findVm("payments/db-1").attested = false;
await sleep(quietMs);
takeCoverage();
await world.slack.person("olivia").types("ops", typed);
const seen = () => JSON.stringify(world.slack.person("olivia").seesChannel("ops").messages);
const until = performance.now() + mostMs;
while (!seen().includes(answer) && performance.now() < until) await sleep(100);
// What follows on the answer
await sleep(1_000);
takeCoverage();
process.stdout.write(
  `${JSON.stringify({ said: seen(), writes: world.compute.writes().length })}\n`,
);
await world.close();
process.exit(0);
