import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Tour } from "./tour.ts";

const restarted = ({ world }: Tour) =>
  Object.values(world.compute.truth().vms).filter(
    (vm) => vm.name.startsWith("edge-") && vm.restarts > 0,
  );

/** A worker as a process of its own, so that it can be killed like one. */
function spawnWorker({ world, lines }: Tour, folder: string): ChildProcess {
  const child = spawn(process.execPath, ["sandbox/demo-worker.ts"], {
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
      await tour.sees(olivia, "ops", /@olivia Restart of 12 VMs has ended/, 120_000);
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
