import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createCompute } from "../../src/compute/create-compute.ts";
import { deleteProject } from "../../src/commands/project/delete.ts";
import { restart } from "../../src/commands/vm/restart.ts";
import { createLog } from "../../src/log.ts";
import type { Person } from "../../src/registry/person.ts";
import type { Target } from "../../src/registry/target.ts";
import { openLedger } from "../../src/requests/ledger.ts";
import type { Performing } from "../../src/requests/performing.ts";
import type { RequestRecord } from "../../src/requests/record.ts";
import { createStore } from "../../src/requests/store.ts";
import {
  type SandboxCompute,
  startSandboxCompute,
} from "../../src/sandbox/compute/start-sandbox-compute.ts";
import { targetOfVm } from "../../src/slack/resolve.ts";
import { testRedis } from "../support/with-redis.ts";
import { auditOf, member, ourTeamId, policy } from "./asking.ts";

export interface WorkerHere extends AsyncDisposable {
  by: Performing;
  compute: SandboxCompute;
  redis: Awaited<ReturnType<typeof testRedis>>["redis"];
  requestKey(id: string): string;
  /** Who Slack knows; a missing one can't be asked about. */
  people: Map<string, Person>;
  lines: string[];
  audit(): Promise<Record<string, unknown>[]>;
  /** The target as it stands at the service now. */
  vm(words: string): Promise<Target>;
  /** Changes a record in Redis behind everybody's back. */
  edit(id: string, change: (record: RequestRecord) => RequestRecord): Promise<void>;
}

/** What performs requests, without the queue and Slack: a real Redis, the sandbox's service, and people by hand. */
export async function workerHere(): Promise<WorkerHere> {
  const [{ redis, key }, compute, folder] = await Promise.all([
    testRedis(),
    startSandboxCompute({ transitionMs: 20 }),
    mkdtemp(path.join(tmpdir(), "gatehouse-ledger-")),
  ]);
  const lines: string[] = [];
  const client = createCompute({ baseUrl: compute.url, apiKey: compute.apiKey, timeoutMs: 1000 });
  const ledger = await openLedger(folder, "w-here");
  const people = new Map(
    ["U0OLIVIA", "U0AMIR", "U0ADA", "U0BEA", "U0CARL"].map((id) => [id, member(id)]),
  );
  const by: Performing = {
    store: createStore(redis, key),
    ledger,
    compute: client,
    commands: [restart, deleteProject],
    policy,
    policyVersion: "v1",
    ourTeamId,
    async person(id) {
      const found = people.get(id);
      if (!found) throw new Error("Slack can't be asked");
      return found;
    },
    workerId: "w-here",
    isAlive: async () => true,
    wake: async () => undefined,
    watch: async () => undefined,
    mine: new Set(),
    calling: new Set(),
    log: createLog({ level: "debug", write: (line) => void lines.push(line) }),
    at: async () => undefined,
  };
  const requestKey = (id: string) => key("request", id);
  return {
    by,
    compute,
    redis,
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
      await compute.close();
      redis.disconnect();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
