import { setTimeout as sleep } from "node:timers/promises";
import { restart } from "../../src/commands/vm/restart.ts";
import { commands } from "../../src/commands/index.ts";
import { operationsOf } from "../../src/policy/approval-rule.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { silentLog } from "../../src/log/log.ts";
import { createKeys, connectRedis } from "../../src/redis/redis.ts";
import { startWorld, type World } from "../../sandbox/world.ts";
import type { State } from "../../src/requests/journal/record.ts";
import { createJournal } from "../../src/requests/journal/journal.ts";
import { submit } from "../../src/requests/submit/submit.ts";
import type { Figure } from "./figure.ts";
import { startGatehouse } from "./process.ts";

const policy = `access: { operate: ["S01ONCALL"] }\n`;
const accepted = (states: readonly State[]) => states.every((one) => one === "accepted");

/** 200 VMs of one project restart at once: how many polls that costs. */
export async function measureFleet(): Promise<readonly Figure[]> {
  await using world = await startWorld({
    roles: [],
    policy,
    compute: { world: { projects: 1, vmsPerProject: 200 } },
    slack: { rateLimits: "off" },
  });
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse(world, "worker"));
  await using crowd = await gather(world);
  const [alone, ...others] = crowd.vms;
  const isDone = (states: readonly State[]) => states.every((one) => one === "done");
  const ids = await crowd.restartAll(others);
  const ended = await crowd.until(ids, 60_000, isDone);
  const lists = world.compute
    .calls()
    .filter(({ route }) => route === "/v1/projects/{project_id}/vms").length;
  const reads = world.compute.calls().filter(({ method }) => method === "GET").length;
  const last = await crowd.restartAll(alone ? [alone] : []);
  await crowd.until(last, 60_000, isDone);
  const doneAt = await crowd.changedAt(last);
  const readsOfOne = world.compute
    .calls()
    .filter(
      ({ method, path, at }) => method === "GET" && path === `/v1/vms/${alone?.id}` && at <= doneAt,
    );
  const pollsOfOne = readsOfOne.length - 1; // one was before the send
  return [
    {
      name: `${ids.length} VMs of a project restarting at once: polls per settled VM`,
      value: lists / ended,
      unit: "",
      bound: 0.1,
    },
    {
      name: "… polls of all of them",
      value: lists,
      unit: "",
      ratio: { to: "those of one VM restarting alone", times: lists / pollsOfOne },
    },
    { name: "… all reads of the service per settled VM", value: reads / ended, unit: "" },
  ];
}

/** 5,000 requests wait for their VMs: what a worker holds for them, and whether the next one has to wait. */
export async function measureWaiting(): Promise<readonly Figure[]> {
  await using world = await startWorld({
    roles: [],
    policy,
    compute: { world: { projects: 51, vmsPerProject: 100 }, transitionMs: 300_000 },
    slack: { rateLimits: "off" },
  });
  await using worker = await startGatehouse(world, "worker");
  await using crowd = await gather(world);
  const [last, ...others] = crowd.vms.slice(0, 5001).toReversed();
  await sleep(15_000);
  const idleCpu = await cpuPercent(worker);
  // The first thousand bring the process to its working size; what the others add is what waiting costs
  const first = await crowd.restartAll(others.slice(0, 1000));
  await crowd.until(first, 60_000, accepted);
  const before = await leastMb(worker);
  const ids = [...first, ...(await crowd.restartAll(others.slice(1000)))];
  await crowd.until(ids, 90_000, accepted);
  const active: number[] = [];
  for (let look = 0; look < 10; look++) {
    active.push(await crowd.activeJobs());
    await sleep(200);
  }
  await crowd.untilToldAndQuiet(90_000);
  const cpu = await cpuPercent(worker);
  const grown = (await leastMb(worker)) - before;
  const began = performance.now();
  await crowd.restartAll(last ? [last] : []);
  await world.compute.called(`POST /v1/vms/${last?.id}/restart`);
  const next = performance.now() - began;
  const busy = active.reduce((sum, one) => sum + one, 0) / active.length;
  const many = ids.length.toLocaleString("en");
  return [
    {
      name: `${many} requests waiting: memory of their worker beyond that of 1,000`,
      value: grown,
      unit: "MB",
      bound: 100,
    },
    {
      name: "… CPU of that worker beyond that of an idle one, once all are told and quiet",
      value: cpu - idleCpu,
      unit: "% of a core",
      bound: 5,
    },
    { name: "… worker slots that they hold (of 20)", value: busy, unit: "", bound: 10 },
    { name: "… until the next request is sent", value: next, unit: "ms", bound: 2000 },
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
    operations: operationsOf(commands),
  });
  const redis = await connectRedis(world.redisUrl, "commands", silentLog());
  const key = createKeys();
  const queues = createQueues(redis, key.prefix);
  const store = createJournal(redis, key);
  const vms = Object.values(world.compute.truth().vms).filter(({ status }) => status === "RUNNING");
  const person = { id: "U0OLIVIA", teamId: world.slack.workspace.team.id, name: "olivia" };

  async function restartAll(which: typeof vms = vms): Promise<string[]> {
    const asked = which.map(async ({ id, name, projectId, status }) => {
      const submitted = await submit(
        {
          command: restart,
          input: { vms: [id] },
          target: { kind: "vm", id, name, projectId, status },
          person: { ...person, kind: "member", groups: ["S01ONCALL"] },
          channelId: "C01OPS",
          via: "command",
          interactionId: `bench-${id}`,
        },
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

  /** Looks twice a second, so that the looking costs little. How many there are, once it is so. */
  async function until(
    ids: readonly string[],
    timeoutMs: number,
    isSo: (states: readonly State[]) => boolean,
  ): Promise<number> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const states = (await store.getMany(ids)).map(({ state }) => state);
      if (states.length === ids.length && isSo(states)) return states.length;
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
    until,
    untilToldAndQuiet,
    changedAt: async ([id = ""]: readonly string[]) => (await store.get(id))?.changedAt ?? 0,
    activeJobs: async () =>
      (await queues.depths()).find(({ queue }) => queue === "requests")?.active ?? 0,
    async [Symbol.asyncDispose]() {
      await queues.close();
      redis.disconnect();
    },
  };
}
