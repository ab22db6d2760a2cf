import { startRedis } from "../../sandbox/ensure-redis.ts";
import type { SandboxComputeOptions } from "../../sandbox/compute/start-sandbox-compute.ts";
import { type Figure, quantile } from "./figure.ts";
import { startProgram } from "./process.ts";
import type { Rounds } from "./refresh-here.ts";

const projects = 500;
const vmsPerProject = 20;
const latencyMs = 20;
const connections = 32;

/**
 * What a refresh of 10,000 VMs costs against what it must cost, and a digest of them against the refresh. The service,
 * Redis and who refreshes are processes of their own, as they are where it counts.
 */
export async function measureRefreshAndDigest(): Promise<readonly Figure[]> {
  await using server = await startRedis();
  await using service = await startProgram(
    [
      "sandbox/compute/main.ts",
      JSON.stringify({
        world: { projects, vmsPerProject },
        latencyMs,
      } satisfies SandboxComputeOptions),
    ],
    {},
    (line) => (line.startsWith("{") ? (JSON.parse(line) as Record<string, string>) : undefined),
  );
  await using measured = await startProgram(
    ["run.mjs", "test/bench/refresh-here.ts"],
    {
      BENCH: JSON.stringify({ ...service.told, redisUrl: server.url, projects, connections }),
    },
    (line): Rounds | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined),
  );
  const { firstMs, rounds } = measured.told;
  const boundOf = ({ calls }: Rounds["rounds"][number]) => (latencyMs * calls) / connections;
  const ratios = rounds.map((round) => round.refreshMs / boundOf(round));
  const bare = rounds.map((round) => round.bareMs / boundOf(round));
  const toBare = rounds.map((round) => round.refreshMs / round.bareMs);
  const digests = rounds.map((round) => round.digestMs / round.refreshMs);
  const middle = (values: readonly number[]) => quantile(values, 0.5);
  const of = `${(projects * vmsPerProject).toLocaleString("en")} VMs of ${projects} projects`;
  return [
    {
      name: `refreshing ${of}, ${latencyMs} ms away, over ${connections} connections, against latency × calls ÷ connections: middle of ${rounds.length}, ${range(ratios)}`,
      value: middle(ratios),
      unit: "×",
      bound: 1.5,
      ratio: { to: "a bare client with the same calls", times: middle(toBare) },
    },
    {
      name: `… the bare client against the same, ${range(bare)}`,
      value: middle(bare),
      unit: "×",
    },
    { name: "… the first refresh of a new process, nothing known", value: firstMs, unit: "ms" },
    {
      name: `a digest of ${of} with 1,300 requests and 30,000 snapshots, read and written, against their refresh: middle of ${rounds.length}, ${range(digests)}`,
      value: middle(digests),
      unit: "×",
      bound: 2,
    },
  ];
}

const range = (values: readonly number[]) =>
  `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`;
