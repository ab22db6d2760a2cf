// npm run demo: a whole world on this machine and its page; Ctrl-C stops everything.
import { killableRedis } from "../sandbox/killable.ts";
import { startPage } from "../sandbox/page/index.ts";
import { demoWorld } from "./demo-world.ts";
import { makeCards } from "./cards/gallery.ts";
import { demoGuide } from "./guide.ts";
import { startKillableWorker } from "./killable-worker.ts";
import { apiPortOf, linesToPropose } from "./programs.ts";
import { createDemoWeather } from "./weather.ts";
import { buildWorld } from "./world.ts";

const began = performance.now();
const isVerbose = process.argv.includes("--verbose");
const stopping = Promise.withResolvers<void>();
process.on("SIGINT", () => stopping.resolve());
process.on("SIGTERM", () => stopping.resolve());

process.stdout.write(
  "Starting Redis, Gatehouse, and sandboxes of the compute service and Slack…\n",
);
const onLog = (line: string) => {
  if (isVerbose) process.stderr.write(line);
};
const world = await buildWorld({ ...demoWorld(), roles: ["gateway"], onLog });
if (!world.redis) throw new Error("the demo has no Redis of its own");
const redis = killableRedis(world.redis);
const worker = await startKillableWorker(world.env, onLog);
const page = await startPage({
  slack: world.slack,
  guide: demoGuide,
  cards: makeCards,
  weather: createDemoWeather({ ...world, redis, worker }),
});
const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`).join("\n");
const lines = linesToPropose(apiPortOf(world.processes));
const seconds = ((performance.now() - began) / 1000).toFixed(1);
process.stdout.write(`
Ready after ${seconds} s. Open this page:

  ${page.url}

It begins with who the people are and what to try; "Weather" breaks things while you look.
Every message that Gatehouse makes is at ${page.url}cards

A program may propose a change, and a person runs it by a button in Slack. As a deploy job, in another terminal in this folder:

${indented(lines.program)}

As an agent, over MCP:

${indented(lines.agent)}

Ctrl-C stops everything.
`);
await stopping.promise;
process.stdout.write("\nStopping…\n");
await page.close();
// In good order even when the weather took it away
await redis.start();
await worker.close();
await world.close();
await redis.close();
process.exit(0);
