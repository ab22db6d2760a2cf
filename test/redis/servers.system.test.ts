import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKeys } from "../../src/redis/redis.ts";
import { hears } from "../stories/words.ts";
import { findRedisServers, type RedisServers } from "../support/redis-servers.ts";
import { portsOf, startProgram } from "../support/start-program.ts";
import { startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { privateRedis } from "../support/with-redis.ts";

let servers: RedisServers;
beforeAll(async () => {
  servers = await findRedisServers();
});
afterAll(() => servers[Symbol.asyncDispose]());

describe("the main story of Gatehouse", () => {
  it.for([
    ["Redis 7", /^Redis server v=7\./, /alone, Redis 7\./],
    ["Redis 8", /^Redis server v=8\./, /alone, Redis 8\./],
    ["Valkey 8", /^Valkey server v=8\./, /alone, Valkey 8\./],
  ] as const)(
    "is the same on %s: a restart, kills of the server and of a worker in the middle of one, the trail, and doctor",
    async ([name, version, called], { skip }) => {
      const program = servers.find(version);
      if (program === undefined)
        throw skip(`${name} can't be had here: name its program in SERVER_PROGRAMS`);
      await using redis = await privateRedis([], { program });
      await using world = await startWorld({
        roles: [],
        namespace: createKeys().namespace,
        redisUrl: redis.url,
      });
      const { olivia, compute, env } = world;
      const envOf = (role: string) => ({
        ...env,
        DATA_DIR: path.join(path.dirname(env["GATEHOUSE_CONFIG"] ?? ""), role),
      });
      const start = async (role: string) => {
        const process = startProgram([role], envOf(role));
        await portsOf(process);
        return process;
      };
      await using _ = await start("gateway");
      await using worker = await start("worker");
      await world.slack.connected();
      await olivia.types("ops", "/vm restart web-2");
      await hears(olivia, "ops", /Restarted web-2 in/);

      await olivia.types("ops", "/vm restart db-1");
      await until(() => compute.writes().length).toBe(2);
      await redis.kill();
      worker.child.kill("SIGKILL");
      await worker.ended;
      await redis.start();
      await using successor = await start("worker");
      await hears(olivia, "ops", /Restarted db-1 in/);
      expect(compute.writes()).toHaveLength(2);
      expect(successor.child.exitCode).toBeNull();

      const run = async (...words: string[]) => {
        await using command = startProgram(words, envOf("gateway"));
        return { code: await command.ended, output: command.output() };
      };
      expect(await run("audit", "verify")).toMatchObject({ code: 0 });
      expect(await run("doctor", "gateway")).toMatchObject({
        code: 0,
        output: expect.stringMatching(called),
      });
    },
  );
});
