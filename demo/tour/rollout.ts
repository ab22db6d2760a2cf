import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Tour } from "./tour.ts";

const restarted = ({ world }: Tour) =>
  Object.values(world.compute.truth().vms).filter(
    (vm) => vm.name.startsWith("edge-") && vm.restarts > 0,
  );

/** A worker as a process of its own, so that it can be killed like one. */
function spawnWorker({ world, lines }: Tour, folder: string): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../worker.ts")], {
    env: {
      ...world.env,
      PATH: process.env["PATH"],
      DATA_DIR: `${world.env["DATA_DIR"] ?? ""}-${folder}`,
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdout.on("data", (chunk: Buffer) => lines.push(chunk.toString()));
  return child;
}

/** A fleet is restarted two at a time, and the worker is killed meanwhile. */
export const rolloutSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "Twelve edge VMs need a restart: one first, then two at a time. Meanwhile the worker is killed.",
    );
    await tour.world.processes[1]?.close();
    const first = spawnWorker(tour, "first");
    let second: ChildProcess | undefined;
    try {
      await tour.types(olivia, "ops", "/vm restart edge-* --canary --max-unavailable 2");
      await tour.dialog(olivia, /edge-01[\s\S]*edge-12/);
      await tour.submits(olivia, {});
      await tour.until("three VMs are restarted", olivia, () => restarted(tour).length >= 3);
      first.kill("SIGKILL");
      await once(first, "exit");
      tour.scene("The worker is dead (kill -9). Another one starts and continues the rollout.");
      second = spawnWorker(tour, "second");
      await tour.sees(olivia, "ops", /@olivia Restarted 12 VMs/);
      tour.holds("all twelve were restarted", restarted(tour).length === 12);
      tour.holds(
        "none of them twice",
        restarted(tour).every(({ restarts }) => restarts === 1),
      );
    } finally {
      first.kill("SIGKILL");
      if (second?.exitCode === null) {
        second.kill("SIGTERM");
        await once(second, "exit");
      }
    }
    await tour.world.startProcess("worker");
  },
];

const names = Array.from({ length: 10 }, (_, n) => `batch-${n}`);

/** More requests at once than Slack takes messages, on VMs that another tool has just made. */
export const burstSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const { compute, slack } = tour.world;
    const olivia = slack.person("olivia");
    tour.scene(
      "Another tool has just made ten VMs. Olivia starts each, all within a second: one channel takes one message a second, so they share a card.",
    );
    const project = compute.edit.addProject({ name: "batch", type: "TEE_VM" });
    for (const name of names) compute.edit.addVm({ project, name, status: "STOPPED" });
    await tour.typesAll(
      olivia,
      "ops",
      names.map((name) => `/vm start ${name}`),
    );
    await tour.sees(olivia, "ops", /✅ Started batch-\d.*\n[\s\S]*Details of one…/);
    const toldOf = () => olivia.mentions().length;
    await tour.until("each was started once, and told", olivia, () => {
      const channel = JSON.stringify(olivia.seesChannel("ops").messages);
      return names.every((name) => new RegExp(`Started \`?${name}`).test(channel));
    });
    tour.holds(
      "ten were started, none of them twice",
      names.every((name) => compute.vm(`batch/${name}`).status === "RUNNING") &&
        compute.writes().filter(({ path }) => path.endsWith("/start")).length === names.length,
    );
    tour.holds(`Olivia's phone rang fewer times than that (${toldOf()} in all)`, toldOf() < 10);
  },
];
