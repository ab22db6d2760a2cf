import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Redis } from "ioredis";
import { startRedis } from "../../../../sandbox/ensure-redis.ts";
import { expected, fresh, type How, kinds, onStage, type Row, type Story } from "../row.ts";
import { until } from "../until.ts";

const fsync = ["--appendfsync", "always"];

export const failoverRows: Row[] = [
  {
    id: "R14",
    fault: "the primary loses its replica, takes claims, and dies; REDIS_REPLICAS=1",
    must: "nothing is sent that the replica doesn't know",
    unknown: "not judged",
    run: (how) =>
      failedOver(how, "1", async ({ before, worst }) => [
        [`nothing was sent while the replica was away (${before})`, before === 0],
        [`at most one effect on each VM (${worst})`, worst <= 1],
      ]),
  },
  {
    id: "R15",
    fault: "the same with REDIS_REPLICAS=0: another worker claims the same attempts",
    must: "changes freeze once the first worker compares its ledger",
    unknown: "not judged",
    run: (how) =>
      failedOver(how, "0", async ({ before, operations, frozen }) => [
        [`sent before the failover: ${before} of ${operations}`, before > 0],
        [
          `the lost claims are told (${frozen})`,
          Number(/Redis lost (\d+) sent/.exec(frozen)?.[1] ?? 0) >= before,
        ],
      ]),
  },
];

interface Seen {
  operations: number;
  /** Changes sent before the failover. */
  before: number;
  /** The most effects on one VM. */
  worst: number;
  frozen: string;
}

function failedOver(
  { seed, times }: How,
  replicas: string,
  judge: (seen: Seen) => Promise<readonly (readonly [string, boolean])[]>,
): Promise<Story> {
  const operations = Math.min(200, times * 4);
  const options = { seed, workers: 0, vms: operations + 20, redis: { args: fsync } };
  return onStage(options, async (stage) => {
    const take = fresh(stage);
    const dir = path.join(stage.folder, "replica");
    await mkdir(dir);
    const { port } = stage.redisServer;
    const follow = ["--replicaof", "127.0.0.1", String(port), ...fsync];
    await using replica = await startRedis({ dir, args: follow });
    for (let n = 0; n < operations; n++) {
      const command = kinds[n % kinds.length] ?? "";
      await stage.request(command, await take(command));
    }
    await until(async () => (await stage.journal()).length === operations);
    // No one is left afterwards to finish what a gateway has in hand
    await until(
      async () => (await stage.redis.zcard(`{${stage.namespace}}:interactions:delayed`)) === 0,
    );
    // Its sealer would notice as well, and freeze
    for (const gateway of stage.gateways()) await gateway.kill();
    await until(async () => /state=online/.test(await stage.redis.info("replication")));
    await stage.redis.wait(1, 10_000);
    const other = new Redis(replica.url);
    await other.replicaof("127.0.0.1", "1");
    await until(async () => !/state=online/.test(await stage.redis.info("replication")));
    const first = await stage.addBot("worker", { slot: "w1", env: { REDIS_REPLICAS: replicas } });
    const isOver = async () =>
      replicas === "0"
        ? (await stage.service.writes()).length >= operations
        : (await stage.journal()).every(({ stage: facts }) => /replica/.test(facts.why ?? ""));
    await until(isOver);
    const before = (await stage.service.writes()).length;
    await first.kill();
    await stage.redisServer.kill();
    await other.replicaof("NO", "ONE");
    other.disconnect();
    await replica.stop();
    stage.faults += 1;
    // The address stays, as behind Sentinel or a name
    stage.redisServer = await startRedis({ dir, port, args: fsync });
    await stage.addBot("worker", { slot: "w2", env: { REDIS_REPLICAS: "0" } });
    await stage.quiet(60_000);
    await stage.addBot("worker", { slot: "w1" });
    const freezeOf = async () => (await stage.redis.get(`{${stage.namespace}}:freeze`)) ?? "";
    if (replicas === "0") await until(async () => (await freezeOf()) !== "");
    const vms = await stage.service.vms();
    const worst = Math.max(...vms.map((vm) => vm.starts + vm.stops + vm.restarts));
    const frozen = await freezeOf();
    return expected(await judge({ operations, before, worst, frozen }), [`worst ${worst}`]);
  });
}
