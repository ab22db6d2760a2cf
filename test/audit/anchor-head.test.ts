import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { anchorDaily, anchorHead } from "../../src/audit/anchor-head.ts";
import { openAnchors, openSigningKey } from "../../src/audit/anchors.ts";
import { createLog, silentLog } from "../../src/log/log.ts";
import type { Message } from "../../src/messages/message.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, sealAll, testFolder } from "./trail-of.ts";

function refuse(): Promise<void> {
  return Promise.reject(new Error("Slack is away"));
}

describe("the signing key", () => {
  it("is whole or not there: a disk that was full when it was made leaves no half of it", async () => {
    await using folder = await testFolder();
    const anchors = path.join(import.meta.dirname, "../../src/audit/anchors.ts");
    const make = `import(${JSON.stringify(anchors)}).then((all) => all.openSigningKey(${JSON.stringify(folder.path)}))`;
    const limited = ["-c", 'ulimit -f 0; exec "$0" -e "$1"', process.execPath, make];
    await expect(promisify(execFile)("sh", limited)).rejects.toThrow("EFBIG");
    expect(await readdir(folder.path)).toEqual([]);
    const made = openSigningKey(folder.path);
    expect(openSigningKey(folder.path).publicKey).toBe(made.publicKey);
    expect(await readdir(folder.path)).toEqual(["audit-key.pem"]);
  });
});

describe("the head of the audit trail", () => {
  it("is written to the log and to the disk", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    await append(world, 3);
    await sealAll(world, folder.path);
    const lines: string[] = [];
    const log = createLog({ level: "info", write: (line) => void lines.push(line) });
    const anchor = await anchorHead({ redis, key, dataDir: folder.path, log });
    expect(anchor).toMatchObject({ seq: 3 });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      event: "audit.head",
      seq: 3,
      hash: anchor?.hash,
    });
    expect(openAnchors(folder.path, key.namespace).last).toEqual(anchor);
  });

  it("is posted once a day, however many processes ask", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const posted: Message[] = [];
    const options = {
      redis: world.redis,
      key: world.key,
      dataDir: folder.path,
      log: silentLog(),
      post: async (message: Message) => void posted.push(message),
    };
    expect(await anchorDaily(options)).toBe(false);
    await append(world, 3);
    await sealAll(world, folder.path);
    const asked = await Promise.all([1, 2, 3].map(() => anchorDaily(options)));
    expect(asked.filter(Boolean)).toHaveLength(1);
    expect(posted).toHaveLength(1);
    expect(posted[0]?.text).toBe("Head of the audit trail after 3 records");
    expect(JSON.stringify(posted[0]?.blocks)).toMatch(/`3:[0-9a-f]{64}`/);
  });

  it("is posted by the next who asks, when posting fails", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    await append(world, 1);
    await sealAll(world, folder.path);
    const options = { redis, key, dataDir: folder.path, log: silentLog() };
    await expect(anchorDaily({ ...options, post: refuse })).rejects.toThrow("Slack is away");
    expect(await anchorDaily({ ...options, post: async () => {} })).toBe(true);
  });
});
