import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  type SandboxCompute,
  startSandboxCompute,
} from "../../../sandbox/compute/start-sandbox-compute.ts";
import { deleteProject } from "../../../src/commands/project/delete.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { createCompute } from "../../../src/fleet/compute/create-compute.ts";
import { createSnapshots } from "../../../src/fleet/inventory/snapshots.ts";
import { createLog } from "../../../src/log/log.ts";
import type { ChangeCommand, Target } from "../../../src/registry/define.ts";
import type { Args, Person } from "../../../src/registry/invocation.ts";
import { createJournal } from "../../../src/core/request/journal.ts";
import { openLedger } from "../../../src/core/request/ledger.ts";
import { createPolls } from "../../../src/core/request/polls.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import { createShares } from "../../../src/core/perform/fair-shares.ts";
import type { Change } from "../../../src/core/perform/step.ts";
import type { WorkerContext } from "../../../src/core/perform/worker-context.ts";
import { targetOfVm } from "../../../src/core/submit/resolve-targets.ts";
import { sandboxAppraiser } from "../../support/appraiser.ts";
import { type TestRedis, testRedis } from "../../support/with-redis.ts";
import { auditOf, member, ourTeamId, policy } from "../asking.ts";

export interface WorkerHere extends AsyncDisposable {
  by: WorkerContext;
  compute: SandboxCompute;
  redis: Awaited<ReturnType<typeof testRedis>>["redis"];
  key: Awaited<ReturnType<typeof testRedis>>["key"];
  requestKey(id: string): string;
  /** The people that Slack knows. Slack can't tell about a person who is missing here. */
  people: Map<string, Person>;
  lines: string[];
  audit(): Promise<Record<string, unknown>[]>;
  /** Reads the target as it is at the service now. */
  vm(words: string): Promise<Target>;
  /** Changes a record in Redis without the journal. */
  edit(id: string, change: (record: RequestRecord) => RequestRecord): Promise<void>;
}

export function asChange(command: ChangeCommand, args: Args): Change {
  return { command, args, effect: command.effect };
}

/**
 * Creates a worker without the queue and Slack. It has a real Redis, the sandbox's compute service,
 * and a fixed set of people.
 */
export async function workerHere(
  over: {
    redis?: Pick<TestRedis, "redis" | "key">;
    compute?: SandboxCompute;
    workerId?: string;
  } = {},
): Promise<WorkerHere> {
  const { workerId = "w-here" } = over;
  const [{ redis, key }, compute, folder] = await Promise.all([
    over.redis ?? testRedis(),
    over.compute ?? startSandboxCompute({ transitionMs: 20 }),
    mkdtemp(path.join(tmpdir(), "gatehouse-ledger-")),
  ]);
  const lines: string[] = [];
  const client = createCompute({ baseUrl: compute.url, apiKey: compute.apiKey, timeoutMs: 60_000 });
  const ledger = await openLedger(folder, workerId);
  const people = new Map(
    ["U0OLIVIA", "U0AMIR", "U0ADA", "U0BEA", "U0CARL"].map((id) => [id, member(id)]),
  );
  const store = createJournal(redis, key);
  const by: WorkerContext = {
    store,
    ledger,
    compute: client,
    appraiser: sandboxAppraiser({ compute: client, policy, redis, key }),
    snapshots: createSnapshots(redis, key),
    commands: [restart, deleteProject],
    policy,
    policyVersion: "v1",
    standstill: () => undefined,
    ourTeamId,
    async person(id) {
      const found = people.get(id);
      if (!found) throw new Error("Slack can't be asked");
      return found;
    },
    projectName: async () => undefined,
    workerId,
    isAlive: async () => true,
    polls: createPolls(redis, key, store.latest),
    calling: new Set(),
    shares: createShares(20),
    sendingSince: new Map(),
    unsent: new Set(),
    durabilityProblem: async () => undefined,
    log: createLog({ level: "debug", write: (line) => void lines.push(line) }),
    at: async () => undefined,
  };
  const requestKey = (id: string) => key("request", id);
  return {
    by,
    compute,
    redis,
    key,
    requestKey,
    people,
    lines,
    audit: () => auditOf(redis, key("audit")),
    async vm(words) {
      const { id, projectId } = compute.vm(words);
      return targetOfVm(await client.vms.get(id), compute.project(projectId).name);
    },
    async edit(id, change) {
      const text = (await redis.hget(requestKey(id), "record")) ?? "{}";
      await redis.hset(
        requestKey(id),
        "record",
        JSON.stringify(change(JSON.parse(text) as RequestRecord)),
      );
    },
    async [Symbol.asyncDispose]() {
      await ledger.close();
      await client.close();
      if (!over.compute) await compute.close();
      if (!over.redis) redis.disconnect();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
