import { demoWorld } from "../../../sandbox/demo-world.ts";
import { startWorld } from "../../../sandbox/world.ts";

// One process with both roles, over HTTP, under the demo's policy. Argument: what Olivia types in #ops, nothing for a quiet one.
// V8 writes what ran when it ends.
const typed = process.argv[2] ?? "";
/** Long enough for a restart to be told, and the same for one without. */
const lifeMs = 9_000;

const world = await startWorld({ ...demoWorld(), receive: "http" });
// Evidence would bring the verifier along
world.compute.edit.findVm("payments/db-1").attested = false;
const began = performance.now();
if (typed !== "") await world.slack.person("olivia").types("ops", typed);
await new Promise((resolve) => setTimeout(resolve, lifeMs - (performance.now() - began)));
const said = JSON.stringify(world.slack.person("olivia").seesChannel("ops").messages);
process.stdout.write(`${JSON.stringify({ said, writes: world.compute.writes().length })}\n`);
await world.close();
process.exit(0);
