import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { it } from "vitest";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { runAudit } from "../../src/audit/cli.ts";
import { type SteppedClock, steppedClock } from "../faults/rows/clock/step-clock.ts";
import { hears } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { loadRedis, moveIn, readState, type State } from "./state.ts";

const vm = (number: number) => `vm-0000-${String(number).padStart(3, "0")}`;
const quick =
  "timing: { httpTimeout: 1500ms, claimWindow: 600ms, quiesce: 3600ms, settleDeadline: 60s, restartMark: 5s, pollFirst: 20ms, pollMost: 100ms, stableGap: 30ms, sweep: 200ms, heartbeat: 200ms, peopleCache: 1s }";

/** `vm stop vm-0000-003: done` of every request. */
async function ends(world: TestWorld): Promise<string[]> {
  const requests = await world.store.getMany(await world.store.recentIds({}, 50));
  return requests
    .map(({ record, state }) => `${record.command} ${record.target.name}: ${state}`)
    .toSorted();
}

const patient = { timeout: 30_000 };

/** Redis, Slack, the compute service, and the data directory as the older version left them, at that time. */
async function moveInto(state: State, clock: SteppedClock, stack: AsyncDisposableStack) {
  // By this Redis no time has passed since
  await clock.set(state.atMs - Date.now());
  const redis = stack.use(await startRedis(clock.redis));
  await loadRedis(state, redis.port);
  const world = stack.use(
    await startWorld({
      roles: [],
      redisUrl: redis.url,
      namespace: "gatehouse",
      policy: state.policy.replace(/^timing: .*$/m, quick),
      compute: { world: { projects: 1, vmsPerProject: 12 } },
      prepare: ({ edit }) => {
        for (const { id, createdAt } of state.vms) edit.findVm(id).createdAt = createdAt;
        for (const number of [3, 6]) edit.setStatus({ vm: vm(number), status: "STOPPING" });
      },
    }),
  );
  await moveIn(state, world);
  return world;
}

/** Exit code and words of `audit verify`. */
async function verdictOn({ redisUrl, env }: TestWorld): Promise<string> {
  let said = "";
  const write = (text: string) => void (said += text);
  const dataDir = env["DATA_DIR"] ?? "";
  const code = await runAudit(["verify"], { redisUrl, namespace: "gatehouse", dataDir, write });
  return `${code}: ${said}`;
}

/**
 * Each state was left in the middle of the work, as a process leaves it that is killed: a stop runs, and a restart waits for
 * it; of two calls nobody knows whether they arrived (one did); a rollout is at its first VM; a snapshot waits for approval;
 * another's outcome is unknown; a result is owed to Slack; a digest is scheduled.
 */
it.concurrent.for(["0.1.0", "592711f"])(
  "what %s left behind goes on under this version: nothing lost, nothing twice, and the trail verifies",
  { timeout: 90_000 },
  async (name, { expect, skip }) => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-upgrade-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const clock = await steppedClock(folder);
    if (typeof clock === "string") throw skip(clock);
    const world = await moveInto(await readState(name), clock, stack);
    const kept = [world.key("digest-schedules"), world.key("policy", "version")] as const;
    const [schedules, former] = [
      await world.client.hgetall(kept[0]),
      await world.client.get(kept[1]),
    ];
    expect(Object.keys(schedules)).not.toEqual([]);
    await world.startProcess("all");
    await world.slack.connected();

    // Where this version reads the same rules as another policy, what was pending is canceled, and a rollout waits
    const isSame = (await world.client.zrevrange(world.key("policy", "order"), 0, 0))[0] === former;
    if (isSame) await world.amir.presses("Approve", { channel: "ops" });
    else {
      await hears(
        world.olivia,
        "ops",
        /Stop 3 VMs[^]*the policy changed since this request/,
        patient.timeout,
      );
      await world.olivia.presses("Resume", { channel: "ops" });
    }
    for (const number of [3, 6])
      world.compute.edit.setStatus({ vm: vm(number), status: "STOPPED" });
    const expected = [
      `vm restart ${vm(0)}: done`,
      `vm restart ${vm(10)}: done`,
      `vm restart ${vm(3)}: cancelled`,
      `vm snapshot ${vm(1)}: done`,
      `vm snapshot ${vm(2)}: unknown`,
      `vm snapshot ${vm(5)}: ${isSame ? "done" : "cancelled"}`,
      `vm start ${vm(4)}: done`,
      ...[3, 6, 7, 8].map((number) => `vm stop ${vm(number)}: done`),
      `vm stop ${vm(9)}: not-applied`,
    ];
    await expect.poll(() => ends(world), patient).toEqual(expected.toSorted());
    await world.settled(30_000);
    // What the older version had sent is not sent again, and what it hadn't is sent once
    const sent = world.compute.writes().map(({ method, path: where }) => `${method} ${where}`);
    expect(sent.toSorted()).toEqual([
      ...(isSame ? [`POST /v1/vms/${vm(5)}/snapshots`] : []),
      ...[7, 8].map((number) => `POST /v1/vms/${vm(number)}/stop`),
    ]);
    expect(await world.store.freezeState()).toBeUndefined();

    // The rollout's end, the result that was owed, and each of the others, none of them twice
    await hears(world.olivia, "ops", /Stop of 3 VMs has ended[^]*3 of 3/, patient.timeout);
    const told = [`Restarted.*${vm(0)}`, `snapshot of.*${vm(1)}`, `Started.*${vm(4)}`];
    for (const result of [...told, `Stopped.*${vm(3)}`, `Restarted.*${vm(10)}`])
      await hears(world.olivia, "ops", new RegExp(result), patient.timeout);
    const results = world.slack
      .messages()
      .flatMap(({ text }) => (text.startsWith("✅") ? [text] : []));
    expect(results).toEqual([...new Set(results)]);

    // A person resolves what was unknown by then
    await world.olivia.presses("It happened", { channel: "ops" });
    await world.slack.until(() => world.slack.seenBy("olivia").modals.length > 0, 30_000);
    await world.olivia.submits({ Reason: "seen in the console" });
    await expect.poll(() => ends(world), patient).toContain(`vm snapshot ${vm(2)}: done`);
    expect(await world.client.hgetall(kept[0])).toEqual(schedules);
    await expect.poll(() => verdictOn(world), patient).toMatch(/^0: .*intact/);
  },
);
