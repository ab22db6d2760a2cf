import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openAnchors } from "../../src/audit/anchors.ts";
import { Trail } from "../../src/audit/trail.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, sealAll, testFolder } from "./trail-of.ts";
import { until } from "../support/until.ts";

describe("the sealer", () => {
  it("is taken over from a process that is killed in the middle, again and again", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const over = new AbortController();
    const appending = (async () => {
      let count = 0;
      for (; !over.signal.aborted; count += 50) {
        await append(world, 50);
        await sleep(20);
      }
      return count;
    })();
    for (let kills = 0; kills < 4; kills++) {
      const program = join(import.meta.dirname, "seal-for-ever.ts");
      const child = spawn(process.execPath, [program, world.url, key.namespace, folder.path]);
      await once(child.stdout, "data");
      const before = (await new Trail(redis, key).head())?.seq ?? 0;
      await until(async () => (await new Trail(redis, key).head())?.seq ?? 0).toBeGreaterThan(
        before,
      );
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    over.abort();
    const count = await appending;
    await sealAll(world, folder.path);
    const { all } = openAnchors(folder.path, key.namespace);
    const verdict = await verifyAudit({ redis, key, anchors: all });
    expect(verdict).toMatchObject({ standing: "intact", sealed: count, anchors: all.length });
    expect(verdict.signed.seq).toBeGreaterThanOrEqual(Math.floor(count / 100) * 100);
  });
});
