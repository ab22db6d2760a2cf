import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { runAudit } from "../../src/cli/audit.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { drillScripts, gapWords } from "../support/backup-drill.ts";
import { composeRedis } from "../support/compose.ts";
import { privateRedis, type PrivateRedis } from "../support/with-redis.ts";
import { append, sealAll, testFolder } from "./trail-of.ts";

/** What the page says under this name, in a shell. */
async function follow(name: string, env: Record<string, string>): Promise<void> {
  const script = drillScripts.get(name);
  if (script === undefined) throw new Error(`operate.md has no "${name}"`);
  const { PATH = "" } = process.env;
  await promisify(execFile)("sh", ["-euc", script], { env: { PATH, ...env } });
}

const key = createKeys();

async function within<T>(
  server: PrivateRedis,
  act: (world: { redis: Awaited<ReturnType<typeof connectRedis>>; key: typeof key }) => Promise<T>,
): Promise<T> {
  const redis = await connectRedis(server.url, "commands", silentLog());
  try {
    return await act({ redis, key });
  } finally {
    redis.disconnect();
  }
}

describe("the drill of docs/operate.md", () => {
  it("has two ways to copy Redis, and puts each back", () => {
    expect([...drillScripts.keys()]).toEqual([
      "copy the directory",
      "copy an RDB file",
      "restore the directory",
      "restore an RDB file",
    ]);
  });

  it.each([
    ["the directory", composeRedis],
    ["an RDB file", privateRedis],
  ] as const)(
    "brings back all that %s had, and the trail is verified from the recorded loss on",
    async (way, start) => {
      await using server = await start();
      await using folder = await testFolder();
      const env = {
        DATA: server.dir,
        COPY: path.join(folder.path, "copy"),
        ADMIN_URL: server.url,
      };
      const dataDir = path.join(folder.path, "gateway");
      const audit = async (...words: string[]) => {
        let said = "";
        const write = (text: string) => void (said += text);
        const access = () => ({ redisUrl: server.url, dataDir });
        return { code: await runAudit(words, { access, write }), said };
      };
      await within(server, async (world) => {
        await append(world, 4);
        await world.redis.multi().set(key("a"), 1).set(key("b"), 2).exec();
        await sealAll(world, dataDir);
      });
      await follow(`copy ${way}`, env);
      await within(server, async (world) => {
        await append(world, 5);
        await sealAll(world, dataDir);
      });
      await server.stop();
      await follow(`restore ${way}`, env);
      await server.start();
      await within(server, async (world) => {
        expect(await world.redis.xlen(key("audit"))).toBe(4);
        expect(await world.redis.mget(key("a"), key("b"))).toEqual(["1", "2"]);
        expect((await audit("verify")).code).toBe(1);
        // The gateways start, and go on
        await append(world, 2);
        await sealAll(world, dataDir);
      });
      expect((await audit("verify")).code).toBe(1);
      expect(await audit(...gapWords.slice(1))).toMatchObject({ code: 0 });
      expect(await audit("verify")).toMatchObject({
        code: 3,
        said: expect.stringContaining("Records 5 to 9 are lost, as ada recorded: restored"),
      });
      // And it is there after the next restart, too
      await server.kill();
      await server.start();
      expect((await audit("verify")).code).toBe(3);
    },
  );
});
