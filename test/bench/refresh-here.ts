import { createAlerts } from "../../src/alerts/alerts.ts";
import { Agent } from "undici";
import { commands } from "../../src/commands/index.ts";
import { createDigests } from "../../src/digests/create-digests.ts";
import { createSnapshots } from "../../src/inventory/snapshots.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { isChange } from "../../src/registry/define.ts";
import { requestsForDigest } from "../../src/digests/request-facts.ts";
import { createJournal } from "../../src/requests/journal/journal.ts";
import { startAgainstService } from "./against-service.ts";
import { fillBusyDay } from "./busy-day.ts";

export interface Rounds {
  firstMs: number;
  rounds: { calls: number; refreshMs: number; bareMs: number; digestMs: number }[];
}

/** Refreshed before anything counts: a process that refreshes every minute has done so for hours. */
const warmRounds = 8;
const countedRounds = 9;

const here = await startAgainstService("refresh");
const { log, redis, key, inventory } = here;
const { url, apiKey, controlUrl, connections } = here.told;
const projects = Number(here.told["projects"]);
const agent = new Agent({ connections, pipelining: 1 });
const store = createJournal(redis, key);
const snapshots = createSnapshots(redis, key);
const digests = createDigests({
  redis,
  key,
  config: { policy: emptyPolicy() },
  inventory,
  snapshots,
  alerts: createAlerts(redis, key),
  requests: requestsForDigest(store, redis, key, commands.filter(isChange)),
  log,
  now: Date.now,
});

/** The calls of a refresh with the same client library, and nothing made of the answers. */
async function readBare(): Promise<void> {
  const pages = Math.ceil(projects / 100);
  const paths = Array.from({ length: projects + pages }, (_, n) =>
    n < pages
      ? `/v1/projects?page=${n + 1}&per_page=100`
      : `/v1/projects/prj-${String(n - pages).padStart(4, "0")}/vms`,
  ).values();
  const reader = async () => {
    for (const path of paths) {
      const headers = { authorization: `Bearer ${apiKey}` };
      const { body } = await agent.request({ origin: url, path, method: "GET", headers });
      await body.text();
    }
  };
  await Promise.all(Array.from({ length: connections }, reader));
}

async function refresh(): Promise<void> {
  if (!(await inventory.refresh())) throw new Error("the refresh did not run to its end");
}

async function buildDigest(): Promise<void> {
  const message = await digests.build("C01OPS");
  // Else it would be measured how quickly nothing is told
  if (!message.text.includes(`${broken} VMs in ERROR`) || !message.text.includes("change"))
    throw new Error(`the digest lacks what happened: ${message.text}`);
}

async function took(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

const firstMs = await took(refresh);
const broken = await fillBusyDay({
  controlUrl,
  store,
  snapshots,
  statuses: digests.statuses,
  vms: await inventory.vms(),
});
const rounds: Rounds["rounds"] = [];
for (let round = -warmRounds; round < countedRounds; round++) {
  here.callsMade();
  const refreshMs = await took(refresh);
  const made = here.callsMade();
  const bareMs = await took(readBare);
  const digestMs = await took(buildDigest);
  if (round >= 0) rounds.push({ calls: made, refreshMs, bareMs, digestMs });
}
process.stdout.write(`${JSON.stringify({ firstMs, rounds } satisfies Rounds)}\n`);
await Promise.all([here.close(), agent.close()]);
