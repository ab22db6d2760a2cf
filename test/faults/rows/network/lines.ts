import { setTimeout as sleep } from "node:timers/promises";
import { askEach, expected, fresh, judged, onStage, type Row } from "../row.ts";

export const networkRows: Row[] = [
  {
    id: "N1",
    fault: "lines to the service tear often and are slow",
    must: "reads prove what happened",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 60 }, async (stage) => {
        const take = fresh(stage);
        stage.lines.compute.tear(0.15);
        stage.lines.compute.slow(60, 100);
        for (let n = 0; n < 10; n++) await askEach(stage, take);
        stage.faults += 30;
        await stage.quiet(60_000);
        return judged(await stage.check(), []);
      }),
  },
  {
    id: "N2",
    fault: "half-open: calls arrive, nothing comes back",
    must: "the stop is found by reading",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const [worker] = stage.workers();
        await worker?.arm({ point: "send", do: "wait" });
        await askEach(stage, take, ["vm stop"]);
        await worker?.hit("send");
        stage.lines.compute.halfOpen(true);
        stage.faults += 1;
        worker?.go();
        await stage.until(({ state }) => state === "unclear");
        stage.lines.compute.halfOpen(false);
        stage.lines.compute.cut();
        const [request] = await stage.quiet();
        return judged(await stage.check(), [
          [`done by reading, not ${request?.state}`, request?.state === "done"],
        ]);
      }),
  },
  {
    id: "N3",
    fault: "a worker is cut off from Redis while it sends",
    must: "another worker takes over; nothing is sent twice",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        // Only this worker's line is parted
        const direct = { REDIS_URL: stage.redisServer.url };
        const parted = await stage.addBot("worker", { slot: "parted" });
        for (const point of ["ledger", "send", "answer"]) {
          await parted.arm({ point, do: "wait" });
          await askEach(stage, take, ["vm stop"]);
          await parted.hit(point);
          stage.lines.redis.partition(true);
          stage.faults += 1;
          parted.go();
          const other = await stage.addBot("worker", { slot: `other-${point}`, env: direct });
          await sleep(2500);
          stage.lines.redis.partition(false);
          await sleep(2500);
          await stage.quiet(45_000);
          await other.kill();
        }
        return judged(await stage.check(), []);
      }),
  },
  {
    id: "N4",
    fault: "a worker is cut off from the service",
    must: "reads prove what happened",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", slowMs: 200 });
        await askEach(stage, take);
        await sleep(60);
        stage.lines.compute.partition(true);
        stage.faults += 1;
        await sleep(1500);
        stage.lines.compute.partition(false);
        await stage.quiet();
        return judged(await stage.check(), []);
      }),
  },
  {
    id: "N5",
    fault: "the service's address is private, or the metadata service's",
    must: "refused before anything is sent",
    unknown: "not judged",
    async run() {
      const { createCompute } = await import("../../../../src/fleet/compute/create-compute.ts");
      const said: string[] = [];
      for (const baseUrl of ["https://169.254.169.254", "http://example.org"]) {
        try {
          await using compute = {
            it: createCompute({ baseUrl, apiKey: "k", timeoutMs: 1000 }),
            [Symbol.asyncDispose]: async () => undefined,
          };
          await compute.it.vms.get("vm-1");
          said.push("called");
        } catch (error) {
          said.push(error instanceof Error ? error.message : String(error));
        }
      }
      return expected(
        [["each is refused", !said.includes("called")]],
        [said.map((text) => text.slice(0, 90)).join(" / ")],
      );
    },
  },
];
