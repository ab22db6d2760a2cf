import { setTimeout as sleep } from "node:timers/promises";
import { restart } from "../../src/commands/vm/restart.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { silentLog } from "../../src/log/log.ts";
import { createKeys, connectRedis } from "../../src/redis/redis.ts";
import { buildWorld, type World } from "../../demo/world.ts";
import { createJournal } from "../../src/core/request/journal.ts";
import { permitFor } from "../support/permits.ts";
import { submit } from "../../src/core/submit/submit.ts";
import type { Figure } from "./figure.ts";
import { startGatehouse } from "./process.ts";
import { policyTerms } from "../../src/features/index.ts";

const policy = `access: { operate: ["S01ONCALL"] }\n`;

/** What 5,000 requests that wait for their VMs cost the worker that waits. */
export async function measureWaiting(): Promise<readonly Figure[]> {
  await using world = await buildWorld({
    roles: [],
    policy,
    compute: { world: { projects: 52, vmsPerProject: 100 }, transitionMs: 300_000 },
    slack: { rateLimits: "off" },
  });
  await using worker = await startGatehouse(world, "worker");
  await using crowd = await gather(world);
  const vms = crowd.vms.slice(0, 5000);
  await sleep(15_000);
  const idleCpu = await cpuPercent(worker);
  const idleMb = await leastMb(worker);
  const ids = await crowd.restartAll(vms);
  await crowd.untilAccepted(ids, 120_000);
  await crowd.untilToldAndQuiet(90_000);
  const cpu = await cpuPercent(worker);
  const mb = await leastMb(worker);
  const many = ids.length.toLocaleString("en");
  return [
    {
      name: `${many} waiting requests: share of a core, and memory, both beyond idleness`,
      values: [
        { value: cpu - idleCpu, unit: "%", most: 5 },
        { value: mb - idleMb, unit: "MB", most: 100 },
      ],
    },
  ];
}

/** Of a core, over a minute: the inventory is refreshed once in it. */
async function cpuPercent(worker: { cpuMs(): number }): Promise<number> {
  const [cpuMs, since] = [worker.cpuMs(), performance.now()];
  await sleep(60_000);
  return (100 * (worker.cpuMs() - cpuMs)) / (performance.now() - since);
}

/** The least of eight seconds (MB): between two collections garbage comes and goes, whatever waits. */
async function leastMb(worker: { rssMb(): number }): Promise<number> {
  let least = Infinity;
  for (let look = 0; look < 20; look++) {
    least = Math.min(least, worker.rssMb());
    await sleep(400);
  }
  return least;
}

/** Everybody who asks for a restart at the same time, and a look at how their requests stand. */
async function gather(world: World) {
  const config = loadConfig({
    env: world.env,
    role: "worker",
    terms: policyTerms,
  });
  const redis = await connectRedis(world.redisUrl, "commands", silentLog());
  const key = createKeys();
  const queues = createQueues(redis, key.prefix);
  const store = createJournal(redis, key);
  const vms = Object.values(world.compute.truth().vms).filter(({ status }) => status === "RUNNING");
  const person = { id: "U0OLIVIA", teamId: world.slack.workspace.team.id, name: "olivia" };

  async function restartAll(which: typeof vms): Promise<string[]> {
    const asked = which.map(async ({ id, name, projectId, status }) => {
      const permit = permitFor({
        command: restart,
        input: { vms: [id] },
        target: { kind: "vm", id, name, projectId, status },
        person: { ...person, kind: "member", groups: ["S01ONCALL"] },
        channelId: "C01OPS",
      });
      const submitted = await submit(
        permit,
        { kind: "typed", interaction: `bench-${id}` },
        {},
        {
          store,
          policy: config.policy,
          policyVersion: config.policyVersion,
          staleAfterMs: config.policy.timing.staleAfterMs,
        },
      );
      return submitted.id;
    });
    return Promise.all(asked);
  }

  /** Looks twice a second, so that the looking costs little. */
  async function untilAccepted(ids: readonly string[], timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const states = (await store.getMany(ids)).map(({ state }) => state);
      if (states.length === ids.length && states.every((one) => one === "accepted")) return;
      if (performance.now() > deadline) {
        throw new Error(
          `waited in vain: ${JSON.stringify(Object.groupBy(states, (one) => one))}`.slice(0, 500),
        );
      }
      await sleep(500);
    }
  }

  /** Waits until Slack lacks nothing, and until the quiet period of what was sent last has passed. */
  async function untilToldAndQuiet(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    const quietAt = performance.now() + config.policy.timing.quiesceMs + 10_000;
    const owed = [store.outbox, store.sharedCards.outbox];
    for (let lacking = 1; lacking > 0 || performance.now() < quietAt;) {
      if (performance.now() > deadline) throw new Error(`Slack still lacks ${lacking} messages`);
      await sleep(500);
      const depths = await Promise.all(owed.map((outbox) => outbox.depth()));
      lacking = depths.reduce((sum, depth) => sum + depth, 0);
    }
  }

  return {
    vms,
    restartAll,
    untilAccepted,
    untilToldAndQuiet,
    async [Symbol.asyncDispose]() {
      await queues.close();
      redis.disconnect();
    },
  };
}
