import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import type { SandboxComputeOptions } from "../../sandbox/compute/start-sandbox-compute.ts";
import type { AttestRounds } from "./attest-here.ts";
import { type Figure, quantile } from "./figure.ts";
import { startProgram } from "./process.ts";

const vms = 1_000;
const latencyMs = 50;
const connections = 16;

/** `/vm attest *` of 1,000 VMs, each with a report of its own, against what its calls must cost. */
export async function measureAttesting(): Promise<readonly Figure[]> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-attest-"));
  try {
    await using server = await startRedis();
    await using service = await startProgram(
      [
        "sandbox/compute/main.ts",
        JSON.stringify({
          world: { projects: 10, vmsPerProject: vms / 10 },
          latencyMs,
          endorsements: folder,
        } satisfies SandboxComputeOptions & { endorsements: string }),
      ],
      {},
      (line) => (line.startsWith("{") ? (JSON.parse(line) as Record<string, string>) : undefined),
    );
    await using measured = await startProgram(
      ["--expose-gc", "run.mjs", "test/bench/attest-here.ts"],
      { BENCH: JSON.stringify({ ...service.told, redisUrl: server.url, folder, connections }) },
      (line): AttestRounds | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined),
    );
    const { rounds, heapMb } = measured.told;
    const ratios = rounds.map(({ calls, ms }) => ms / ((latencyMs * calls) / connections));
    const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    return [
      {
        name: `attesting ${vms.toLocaleString("en")} VMs, ${latencyMs} ms away, over ${connections} connections, against latency × calls ÷ connections: middle of ${rounds.length}, ${range}`,
        value: quantile(ratios, 0.5),
        unit: "×",
        bound: 1.2,
      },
      {
        name: "… what the process holds more after the last of them than after the first",
        value: (heapMb.at(-1) ?? 0) - (heapMb[0] ?? 0),
        unit: "MB",
        bound: 5,
      },
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
