import { describe, expect, it } from "vitest";
import { ComputeError } from "../../src/fleet/compute/compute.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, patiently, redisTrouble } from "../../src/redis/redis.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { connectImpatiently } from "../support/with-redis.ts";

const failure = (act: Promise<unknown>) =>
  act.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("trouble with Redis", () => {
  it("is told from a bug, whichever way Redis or its client says it", async () => {
    await using server = await startRedis();
    const impatient = await connectImpatiently(server.url, "commands", { part: 0.1 });
    const redis = await connectRedis(server.url, "commands", silentLog());
    const other = await connectRedis(server.url, "commands", silentLog());
    expect(redisTrouble(await failure(redis.lpush("a", "1").then(() => redis.get("a"))))).toBe(
      undefined,
    );
    await other.config("SET", "maxmemory", "1mb");
    expect(redisTrouble(await failure(redis.set("b", "1")))).toBe("Redis is full");
    await other.config("SET", "maxmemory", "0");
    await other.replicaof("127.0.0.1", "1");
    expect(redisTrouble(await failure(redis.set("b", "1")))).toBe("Redis is a read-only replica");
    await other.replicaof("NO", "ONE");
    await patiently(() => redis.set("b", "1"));
    process.kill(server.pid, "SIGSTOP");
    expect(redisTrouble(await failure(impatient.set("b", "2")))).toBe("Redis answers slowly");
    process.kill(server.pid, "SIGCONT");
    await patiently(() => redis.set("b", "3"));
    const lost = failure(redis.blpop("c", 5));
    await server.kill();
    expect(redisTrouble(await lost)).toMatch(/^Redis (is down|answers slowly)$/);
    expect(redisTrouble(await failure(redis.set("b", "4")))).toBe("Redis is down");
    impatient.disconnect();
    redis.disconnect();
    other.disconnect();
  });

  it("is no other failure", () => {
    expect(redisTrouble(new ComputeError("unclear", "GET /v1/vms", "socket hang up"))).toBe(
      undefined,
    );
    expect(redisTrouble(new TypeError("x is not a function"))).toBe(undefined);
  });
});

describe("patience with Redis", () => {
  it("ends when Redis takes it, at another failure, and when it was long enough", async () => {
    let tries = 0;
    const third = () =>
      (tries += 1) < 3 ? Promise.reject(new Error("Command timed out")) : Promise.resolve("done");
    expect(await patiently(third)).toBe("done");
    await expect(patiently(() => Promise.reject(new Error("a bug")))).rejects.toThrow("a bug");
    const never = () => Promise.reject(new Error("Connection is closed."));
    await expect(patiently(never, 200)).rejects.toThrow("Connection is closed.");
  });
});
