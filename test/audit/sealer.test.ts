import { once } from "node:events";
import { mkdir, open, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openAnchors } from "../../src/audit/anchors.ts";
import { sealBehind, startSealer } from "../../src/audit/sealer.ts";
import { Trail } from "../../src/audit/trail.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { privateRedis, testRedis } from "../support/with-redis.ts";
import { append, sealAll, sealed, testFolder } from "./trail-of.ts";
import { until } from "../support/until.ts";

const log = silentLog();

describe("the sealer", () => {
  it("seals what moves append, in order", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const sealer = startSealer({ redis, key, log, dataDir: folder.path, everyMs: 5 });
    await append(world, 3);
    await sealed(world);
    await append(world, 4);
    await sealed(world);
    await sealer.close();
    expect(await verifyAudit({ redis, key })).toMatchObject({ standing: "intact", sealed: 7 });
  });

  it("never forks the chain, when two race for 1,000 records", async () => {
    await using world = await testRedis();
    await using other = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    // A turn that is over at once: only the comparison of the head keeps them apart
    const options = { key, log, dataDir: folder.path, everyMs: 1 };
    const sealers = [
      startSealer({ ...options, redis }),
      startSealer({ ...options, redis: other.redis }),
    ];
    for (let round = 0; round < 50; round++) await append(world, 20);
    await sealed(world);
    await Promise.all(sealers.map((sealer) => sealer.close()));
    expect(await verifyAudit({ redis, key })).toMatchObject({ standing: "intact", sealed: 1000 });
  });

  it("leaves, and stops nobody, when only its own disk fails; alone it says that it is stuck", async () => {
    await using world = await testRedis();
    await using other = await testRedis();
    await using broken = await testFolder();
    await using sound = await testFolder();
    const said: string[] = [];
    const options = { key: world.key, log, everyMs: 5, anchorEveryMs: 0, stuckAfterMs: 200 };
    const one = startSealer({
      ...options,
      redis: world.redis,
      dataDir: broken.path,
      onUnfit: (why) => said.push(`unfit: ${why}`),
      onStuck: (why) => said.push(`stuck: ${why}`),
    });
    await append(world, 1);
    await sealed(world);
    const file = join(broken.path, "audit-anchors.jsonl");
    await until(async () => (await readdir(broken.path)).includes("audit-anchors.jsonl")).toBe(
      true,
    );
    await rm(file);
    await mkdir(file);
    await append(world, 1);
    await until(() => said).toEqual([expect.stringMatching(/^stuck: .*EISDIR/)]);
    const two = startSealer({
      ...options,
      redis: other.redis,
      dataDir: sound.path,
      onStuck: (why) => said.push(`stuck, too: ${why}`),
    });
    await append(world, 1);
    await until(() => said.at(-1)).toMatch(/^unfit: .*can't be kept on this disk: EISDIR/);
    await sealed(world);
    expect(said.filter((line) => line.startsWith("stuck, too"))).toEqual([]);
    await one.close();
    await two.close();
    expect(await verifyAudit(world)).toMatchObject({ standing: "intact", sealed: 3 });
  });

  it("refuses seals computed on a head that is not the head any more", async () => {
    await using world = await testRedis();
    await using other = await testRedis();
    await append(world, 9);
    const [fast, slow] = [other, world].map(({ redis }) => new Trail(redis, world.key));
    if (!fast || !slow) throw new Error("two trails");
    const entries = await slow.records({ most: 9 });
    const head = await sealBehind(fast, undefined, 1, entries.slice(0, 5));
    expect(head).toMatchObject({ seq: 5 });
    expect(await sealBehind(slow, undefined, 1, entries)).toBeUndefined();
    // Nor onto one that another process has sealed behind meanwhile
    expect(await sealBehind(fast, head, 6, entries.slice(5, 7))).toMatchObject({ seq: 7 });
    expect(await sealBehind(slow, head, 6, entries.slice(5))).toBeUndefined();
    expect(await verifyAudit(world)).toMatchObject({ standing: "intact", sealed: 7 });
  });

  it("seals where another process has stopped, and leaves to another what that has a lease for", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    await redis.set(key("audit", "sealer"), "another", "PX", 600_000);
    await append(world, 2);
    const asked = vi.spyOn(redis, "set");
    const sealer = startSealer({ redis, key, log, dataDir: folder.path, everyMs: 5 });
    // When it asks for the lease again, its turn before has sealed nothing
    await until(() => asked.mock.calls.length).toBeGreaterThan(1);
    expect(await verifyAudit({ redis, key })).toMatchObject({ sealed: 0, unsealed: { count: 2 } });
    await redis.del(key("audit", "sealer"));
    await sealed(world);
    await redis.set(key("audit", "sealer"), "another", "PX", 600_000);
    await append(world, 2);
    await sealer.close();
    expect(await verifyAudit({ redis, key })).toMatchObject({ standing: "intact", sealed: 4 });
  });

  it("notices with its next run that seals were cut, and says so once", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const stuck: string[] = [];
    const onStuck = (why: string) => void stuck.push(why);
    const sealer = startSealer({ redis, key, log, dataDir: folder.path, everyMs: 5, onStuck });
    await append(world, 3);
    await sealed(world);
    await redis.xtrim(key("audit", "seals"), "MAXLEN", 0);
    await until(() => stuck).toEqual([expect.stringMatching(/have disappeared/)]);
    await sealed(world);
    await sealer.close();
    expect(stuck).toHaveLength(1);
    expect((await verifyAudit({ redis, key })).problem).toMatchObject({ kind: "gap", seq: 1 });
  });

  it("makes a key that only its owner can read", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    await append(world, 1);
    await sealAll(world, folder.path);
    expect((await stat(join(folder.path, "audit-key.pem"))).mode & 0o777).toBe(0o600);
  });

  it("keeps anchors that survive a torn line, apart for each installation", async () => {
    await using folder = await testFolder();
    const hash = "a".repeat(64);
    openAnchors(folder.path, "one").add({ seq: 1, hash, at: 5 });
    const file = join(folder.path, "audit-anchors.jsonl");
    await writeFile(file, `${await readFile(file, "utf8")}{"chain":"one","se`);
    openAnchors(folder.path, "two").add({ seq: 7, hash, at: 6 });
    const anchors = openAnchors(folder.path, "one");
    anchors.add({ seq: 2, hash, at: 7 });
    expect(anchors.all.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(openAnchors(folder.path, "one").last).toEqual({ seq: 2, hash, at: 7 });
    expect(openAnchors(folder.path, "two").last?.seq).toBe(7);
  });

  it("tells that it can't seal, once, when its disk takes nothing", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    await append(world, 1);
    const stuck: string[] = [];
    const told = Promise.withResolvers<void>();
    const dataDir = join(folder.path, "file");
    await writeFile(dataDir, "not a folder");
    const sealer = startSealer({
      redis,
      key,
      log,
      dataDir,
      everyMs: 5,
      stuckAfterMs: 20,
      onStuck(why) {
        stuck.push(why);
        told.resolve();
      },
    });
    await told.promise;
    await sealer.close();
    expect(stuck).toEqual([
      expect.stringContaining("the audit trail could not be sealed and anchored"),
    ]);
  });
});

describe("a trail that lost its end", () => {
  it("goes on behind the loss, says so in the trail, and is not called intact", async () => {
    await using server = await privateRedis();
    await using folder = await testFolder();
    const key = createKeys();
    {
      const redis = await connectRedis(server.url, "commands", log);
      await append({ redis, key }, 30);
      await sealAll({ redis, key }, folder.path);
      redis.disconnect();
    }
    await server.kill();
    await tearTail(server.dir);
    await server.start();
    const redis = await connectRedis(server.url, "commands", log);
    const { all, last } = openAnchors(folder.path, key.namespace);
    expect(last?.seq).toBe(30);
    const torn = await verifyAudit({ redis, key, anchors: all });
    expect(torn).toMatchObject({ standing: "broken", problem: { kind: "truncated" } });
    const lostFrom = torn.problem?.seq ?? 0;

    await append({ redis, key }, 2);
    const stuck: string[] = [];
    const onStuck = (why: string) => void stuck.push(why);
    const sealer = startSealer({ redis, key, log, dataDir: folder.path, everyMs: 5, onStuck });
    await sealed({ redis, key });
    // It compares again after each reconnect, before it has anchored anything behind the loss by itself
    for (let n = 0; n < 2; n++) {
      const isBack = once(redis, "ready");
      redis.disconnect(true);
      await isBack;
      await append({ redis, key }, 1);
      await sealed({ redis, key });
    }
    await sealer.close();
    expect(stuck).toEqual([
      `sealed audit records after number ${lostFrom - 1} have disappeared or were replaced`,
    ]);
    const after = await verifyAudit({ redis, key, anchors: all });
    expect(after.problem).toMatchObject({ kind: "gap", seq: lostFrom });
    expect(after.unsealed.count).toBe(0);
    expect(after.head?.seq).toBeGreaterThan(30);
    // without anything kept elsewhere the trail itself still says it
    expect((await verifyAudit({ redis, key })).problem?.kind).toBe("gap");
    redis.disconnect();
  });

  it("gives no number twice when the seals alone were deleted", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    await using elsewhere = await testFolder();
    const { redis, key } = world;
    await append(world, 10);
    await sealAll(world, folder.path);
    for (let seq = 6; seq <= 10; seq++) await redis.xdel(key("audit", "seals"), `${seq}-0`);
    await sealAll(world, elsewhere.path);
    const verdict = await verifyAudit({ redis, key });
    expect(verdict).toMatchObject({ problem: { kind: "gap", seq: 6 }, sealed: 11 });
    expect(verdict.head?.seq).toBe(16);
  });

  it("says once that another chain stands where it anchored its own", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    openAnchors(folder.path, key.namespace).add({ seq: 2, hash: "b".repeat(64), at: 1 });
    await using elsewhere = await testFolder();
    await append(world, 5);
    await sealAll(world, elsewhere.path);
    await sealAll(world, folder.path);
    await sealAll(world, folder.path);
    expect(await redis.xlen(key("audit"))).toBe(6);
    expect((await verifyAudit({ redis, key })).problem).toMatchObject({ kind: "gap", seq: 2 });
  });
});

/** Cuts the append-only file in the middle of its last entries, as a crash of the machine does. */
async function tearTail(dir: string): Promise<void> {
  const names = await readdir(dir, { recursive: true });
  const name = names.find((found) => found.endsWith(".incr.aof"));
  if (!name) throw new Error(`no append-only file in ${names.join(", ")}`);
  const file = await open(join(dir, name), "r+");
  const { size } = await file.stat();
  const text = (await file.readFile()).toString("latin1");
  const seal = text.lastIndexOf("25-0");
  await file.truncate(Math.min(size - 1, seal + 20));
  await file.close();
}
