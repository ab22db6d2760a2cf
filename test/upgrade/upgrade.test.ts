import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { it } from "vitest";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { runAudit } from "../../src/audit/cli.ts";
import { steppedClock } from "../faults/rows/clock/step-clock.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { loadRedis, moveIn, readState } from "./state.ts";

const vm = (number: number) => `vm-0000-${String(number).padStart(3, "0")}`;
const quick =
  "timing: { httpTimeout: 700ms, claimWindow: 600ms, quiesce: 2s, settleDeadline: 60s, restartMark: 5s, pollFirst: 20ms, pollMost: 100ms, stableGap: 30ms, sweep: 200ms, heartbeat: 200ms, peopleCache: 1s }";

/** `vm stop vm-0000-003: done` of every request. */
async function ends(world: TestWorld): Promise<string[]> {
  const requests = await world.store.getMany(await world.store.recentIds({}, 50));
  return requests
    .map(({ record, state }) => `${record.command} ${record.target.name}: ${state}`)
    .toSorted();
}

/**
 * Each state was left in the middle of the work, as a process leaves it that is killed: a stop runs, and a restart waits for
 * it; of two calls nobody knows whether they arrived (one did); a rollout is at its first VM; a snapshot waits for approval;
 * another's outcome is unknown; a result is owed to Slack; a digest is scheduled.
 */
it.concurrent.for(["0.1.0", "592711f"])(
  "what %s left behind goes on under this version: nothing lost, nothing twice, and the trail verifies",
  { timeout: 60_000 },
  async (name, { expect, skip }) => {
    const state = await readState(name);
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-upgrade-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const clock = await steppedClock(folder);
    if (typeof clock === "string") return skip(clock);
    // By this Redis no time has passed since
    await clock.set(state.atMs - Date.now());
    const redis = stack.use(await startRedis({ env: clock.env }));
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
    const before = await world.client.hgetall(world.key("digest-schedules"));
    expect(Object.keys(before)).not.toEqual([]);
    const former = await world.client.get(world.key("policy", "version"));
    await world.startProcess("all");
    await world.slack.connected();

    // Where this version reads the same rules as another policy, what was pending is canceled, and a rollout waits
    const isSame = (await world.client.get(world.key("policy", "version"))) === former;
    const draft = isSame ? "done" : "cancelled";
    if (isSame) await world.amir.presses("Approve", { channel: "ops" });
    else {
      await hears(world.olivia, "ops", /Stop 3 VMs[^]*the policy changed since this request/);
      await world.olivia.presses("Resume", { channel: "ops" });
    }
    await expect.poll(() => ends(world)).not.toContain(`vm snapshot ${vm(5)}: draft`);
    for (const number of [3, 6])
      world.compute.edit.setStatus({ vm: vm(number), status: "STOPPED" });
    const expected = [
      `vm restart ${vm(0)}: done`,
      `vm restart ${vm(10)}: done`,
      `vm restart ${vm(3)}: cancelled`,
      `vm snapshot ${vm(1)}: done`,
      `vm snapshot ${vm(2)}: unknown`,
      `vm snapshot ${vm(5)}: ${draft}`,
      `vm start ${vm(4)}: done`,
      ...[3, 6, 7, 8].map((number) => `vm stop ${vm(number)}: done`),
      `vm stop ${vm(9)}: not-applied`,
    ];
    await expect.poll(() => ends(world), { timeout: 30_000 }).toEqual(expected.toSorted());
    await world.settled();
    // What the older version had sent is not sent again, and what it hadn't is sent once
    const sent = world.compute.writes().map(({ method, path: where }) => `${method} ${where}`);
    expect(sent.toSorted()).toEqual([
      ...(draft === "done" ? [`POST /v1/vms/${vm(5)}/snapshots`] : []),
      ...[7, 8].map((number) => `POST /v1/vms/${vm(number)}/stop`),
    ]);
    expect(await world.store.freezeState()).toBeUndefined();

    // People: the result that was owed, the rollout's end, and each of the others once
    const end = await hears(world.olivia, "ops", /Stop of 3 VMs has ended/);
    expect(wordsOf(end)).toContain("3 of 3");
    const said = world.slack.messages();
    for (const what of ["Restarted", "snapshot of", "Stopped", "Started", "Restarted"].entries()) {
      const number = [0, 1, 3, 4, 10][what[0]] ?? 0;
      const told = said.filter((message) => JSON.stringify(message.blocks).includes(vm(number)));
      expect(JSON.stringify(told), what[1]).toContain(what[1]);
    }
    const results = said.map(({ text }) => text).filter((text) => text.startsWith("✅"));
    expect(results).toEqual([...new Set(results)]);
    await world.olivia.presses("It happened", { channel: "ops" });
    await world.slack.until(() => world.slack.seenBy("olivia").modals.length > 0);
    await world.olivia.submits({ Reason: "seen in the console" });
    await expect.poll(() => ends(world)).toContain(`vm snapshot ${vm(2)}: done`);
    expect(await world.client.hgetall(world.key("digest-schedules"))).toEqual(before);

    let verdict = "";
    const write = (text: string) => void (verdict += text);
    const dataDir = world.env["DATA_DIR"] ?? "";
    const terminal = { redisUrl: redis.url, namespace: "gatehouse", dataDir, write };
    await expect.poll(() => runAudit(["verify"], terminal), { timeout: 10_000 }).toBe(0);
    expect(verdict).toContain("intact");
  },
);
