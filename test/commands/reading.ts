import { commands } from "../../src/commands/index.ts";
import { createCompute } from "../../src/compute/create-compute.ts";
import { createInventory } from "../../src/inventory/create-inventory.ts";
import type { Inventory } from "../../src/inventory/inventory.ts";
import { createSnapshots, type Snapshots } from "../../src/inventory/snapshots.ts";
import { silentLog } from "../../src/log.ts";
import type { Message } from "../../src/messages/message.ts";
import {
  type SandboxCompute,
  startSandboxCompute,
} from "../../src/sandbox/compute/start-sandbox-compute.ts";
import type { ReadContext, RequestSummary } from "../../src/registry/define.ts";
import { parseCommand } from "../../src/registry/parse.ts";
import { resolveTarget } from "../../src/slack/resolve.ts";
import { person } from "../policy/sample.ts";
import { testRedis } from "../support/with-redis.ts";

/** The parts of the world that commands which only read look at: the service, its inventory, the snapshots we know. */
export interface Reading extends AsyncDisposable {
  service: SandboxCompute;
  inventory: Inventory;
  snapshots: Snapshots;
  /** What the person typed, answered. */
  reads(words: string): Promise<Message>;
}

const noControl = () => Promise.reject(new Error("not part of this test"));

export async function startReading(
  over: Partial<ReadContext> & {
    world?: "demo" | "empty";
    requests?: readonly RequestSummary[];
  } = {},
): Promise<Reading> {
  const { world = "demo", requests = [], ...rest } = over;
  const service = await startSandboxCompute({ world });
  const compute = createCompute({ baseUrl: service.url, apiKey: service.apiKey, timeoutMs: 5000 });
  const { redis, key, ...at } = await testRedis();
  const inventory = createInventory({ redis, key, compute, log: silentLog(), refreshMs: 60_000 });
  const snapshots = createSnapshots(redis, key);
  await inventory.refresh();

  const context: ReadContext = {
    person: person("U0VERA"),
    channelId: "C01OPS",
    compute,
    inventory,
    snapshots,
    resolve: (kind, words) => resolveTarget(kind, words, inventory),
    mayRun: () => true,
    commands,
    recentRequests: async ({ open, requesterId, targetId, most }) =>
      requests
        .filter((one) => !open || one.state !== "done")
        .filter((one) => requesterId === undefined || one.requesterId === requesterId)
        .filter((one) => targetId === undefined || one.target.id === targetId)
        .slice(0, most),
    status: async () => [],
    pins: [],
    control: {
      mustAdminister: () => undefined,
      freeze: noControl,
      thaw: noControl,
      canI: noControl,
      why: noControl,
      approvals: noControl,
      audit: noControl,
      digest: noControl,
    },
    now: Date.now,
    ...rest,
  };

  return {
    service,
    inventory,
    snapshots,
    async reads(words) {
      const parsed = parseCommand(words, commands);
      if ("refusal" in parsed) throw new Error(parsed.refusal.text);
      const { command, args } = parsed;
      if (command.kind !== "read") throw new Error(`${command.name} changes something`);
      const answer = await command.answer(args as never, context);
      return "message" in answer ? answer.message : answer;
    },
    async [Symbol.asyncDispose]() {
      await inventory.close();
      await compute.close();
      await at[Symbol.asyncDispose]();
      await service.close();
    },
  };
}
