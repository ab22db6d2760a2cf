import { createTrail } from "../../src/audit/trail.ts";
import { createAcceptedPins } from "../../src/attestation/pins.ts";
import { createAppraiser, createEvidenceRegister } from "../../src/attestation/appraiser.ts";
import type { ReadContext } from "../../src/commands/context.ts";
import { attest } from "../../src/commands/vm/attest.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { sandboxRoots } from "../../sandbox/evidence/vendors.ts";
import { startAgainstService } from "./against-service.ts";

export interface AttestRounds {
  rounds: { calls: number; ms: number }[];
  /** After each round, collected. */
  heapMb: number[];
}

const countedRounds = 5;

const here = await startAgainstService("attest");
const { redis, key, compute, inventory } = here;
const { controlUrl } = here.told;
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
    endorsements: String(here.told["folder"]),
    pins: [{ targets: ["*"], measurements: pins }],
  },
};
const appraiser = createAppraiser({
  compute,
  config: { policy },
  register: createEvidenceRegister(redis, key),
  accepted: createAcceptedPins({
    redis,
    key,
    trail: { find: createTrail(redis, key).find, alarm: () => Promise.resolve() },
    secret: () => "xoxb-bench",
  }),
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
  here.callsMade();
  const began = performance.now();
  await attestAll();
  told.rounds.push({ calls: here.callsMade(), ms: performance.now() - began });
  told.heapMb.push(heapMb());
}
process.stdout.write(`${JSON.stringify(told)}\n`);
await here.close();
