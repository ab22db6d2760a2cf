import { setTimeout as sleep } from "node:timers/promises";
import { buildWorld } from "../../demo/world.ts";
import type { Figure } from "./figure.ts";
import { startGatehouse } from "./process.ts";
import { ask, running, tell } from "./told.ts";

const policy = `access: { operate: ["S01ONCALL", "S02LEADS"] }
limits: { requestsPerMinute: 10000 }
sharedChannels: [C07VENDOR]
`;
const channels = ["C01OPS", "C02STATUS", "C07VENDOR"] as const;
const perSecond = 14;
const forMs = 60_000;
/** Half of the limit in deploy/: 100,000 VMs take another quarter. */
const mostMb = 256;

/** What a gateway and a worker need while many people work at once, with Slack's own limits: deploy/ sets its limits by it. */
export async function measureMemory(): Promise<readonly Figure[]> {
  await using world = await buildWorld({
    roles: [],
    policy,
    compute: { world: { projects: 30, vmsPerProject: 40 }, transitionMs: 300 },
    slack: { rateLimits: "slack" },
  });
  await using programs = new AsyncDisposableStack();
  const start = async (role: "gateway" | "worker") => {
    const env = { ...world.env, DATA_DIR: `${world.env["DATA_DIR"]}-${role}` };
    return programs.use(await startGatehouse({ ...world, env }, role));
  };
  const both = [await start("gateway"), await start("worker")];
  await sleep(5_000);
  const where = Array.from(
    { length: (perSecond * forMs) / 1000 },
    (_, n) => channels[n % channels.length] ?? "",
  );
  await tell(world, ask(world, running(world), where, forMs));
  return [
    {
      name: `${perSecond} requests a second for a minute: memory at most of a gateway, of a worker`,
      values: both.map((program) => ({ value: program.peakMb(), unit: "MB", most: mostMb })),
    },
  ];
}
