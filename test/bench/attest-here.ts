import { createAcceptedPins } from "../../src/attestation/accepted-pins.ts";
import { createAppraiser } from "../../src/attestation/appraiser.ts";
import { createEvidenceRegister } from "../../src/attestation/register.ts";
import type { ReadContext } from "../../src/commands/context.ts";
import { attest } from "../../src/commands/vm/attest.ts";
import { createCompute } from "../../src/compute/create-compute.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { createInventory } from "../../src/inventory/create-inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { sandboxRoots } from "../../sandbox/evidence/vendors.ts";

export interface AttestRounds {
  rounds: { calls: number; ms: number }[];
  /** After each round, collected. */
  heapMb: number[];
}

const countedRounds = 5;

const { url, apiKey, controlUrl, redisUrl, folder, connections } = JSON.parse(
  process.env["BENCH"] ?? "{}",
) as Record<"url" | "apiKey" | "controlUrl" | "redisUrl" | "folder", string> &
  Record<"connections", number>;
const log = silentLog();
const redis = await connectRedis(redisUrl, "commands", log);
const key = createKeys("attest");
let calls = 0;
const compute = createCompute({
  baseUrl: url,
  apiKey,
  timeoutMs: 15_000,
  connections,
  onCall: () => (calls += 1),
});
const inventory = createInventory({ redis, key, compute, log, refreshMs: 3_600_000 });
await inventory.refresh();
const image = "one for all";
const vms = await inventory.vms();
const waiting = vms.values();
const edit = (name: string, input: object) =>
  fetch(`${controlUrl}/_sandbox/edit/${name}`, { method: "POST", body: JSON.stringify(input) });
const prepare = async () => {
  for (const { id: vm } of waiting) {
    await edit("setMachine", { vm, image });
    await edit("setStatus", { vm, status: "RUNNING" });
  }
};
await Promise.all(Array.from({ length: 16 }, prepare));
const pins = [...new Set(vms.map(({ specs }) => specs?.cpu ?? 0))].map((cpus) =>
  launchMeasurement(image, cpus),
);
const usual = emptyPolicy();
const policy = {
  ...usual,
  attestation: {
    ...usual.attestation,
    endorsements: folder,
    pins: [{ targets: ["*"], measurements: pins }],
  },
};
const appraiser = createAppraiser({
  compute,
  policy: policy.attestation,
  register: createEvidenceRegister(redis, key),
  accepted: createAcceptedPins(redis, key),
  roots: sandboxRoots,
  now: Date.now,
});
// All that a fleet is attested with
const context = { appraiser, inventory, policy, now: Date.now } as unknown as ReadContext;

async function attestAll(): Promise<void> {
  const answer = await attest.answer({ vm: "*" } as never, context as never);
  const { text } = "message" in answer ? answer.message : answer;
  if (!text.includes(`${vms.length.toLocaleString("en-US")} verified`))
    throw new Error(`not all are verified: ${text}`);
}

function heapMb(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

await attestAll();
const told: AttestRounds = { rounds: [], heapMb: [] };
for (let round = 0; round < countedRounds; round++) {
  calls = 0;
  const began = performance.now();
  await attestAll();
  told.rounds.push({ calls, ms: performance.now() - began });
  told.heapMb.push(heapMb());
}
process.stdout.write(`${JSON.stringify(told)}\n`);
await Promise.all([inventory.close(), compute.close()]);
redis.disconnect();
