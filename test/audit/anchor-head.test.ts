import { describe, expect, it } from "vitest";
import { createLog, silentLog } from "../../src/log/log.ts";
import { createNotices } from "../../src/core/deliver/notices.ts";
import { announceHead } from "../../src/operate/trail.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, sealAll, testFolder } from "./trail-of.ts";

describe("the head of the audit trail", () => {
  it("is announced once a day, however many processes ask, and written to the log", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const lines: string[] = [];
    const log = createLog({ level: "info", write: (line) => void lines.push(line) });
    const { announce } = createNotices(world);
    const announced: [isNew: boolean, text: string][] = [];
    const on = {
      ...world,
      log,
      async announce(notice: Parameters<typeof announce>[0]) {
        const isNew = await announce(notice);
        announced.push([isNew, JSON.stringify(notice.message)]);
        return isNew;
      },
    };
    await announceHead(on, "C0AUDIT");
    await append(world, 3);
    await sealAll(world, folder.path);
    await announceHead(on, undefined);
    expect(announced).toEqual([]);
    await Promise.all([1, 2, 3].map(() => announceHead(on, "C0AUDIT")));
    const texts = announced.flatMap(([isNew, message]) => (isNew ? [message] : []));
    expect(texts).toHaveLength(1);
    const [text = ""] = texts;
    expect(text).toContain("Head of the audit trail after 3 records");
    const [, hash] = /`3:([0-9a-f]{64})`/.exec(text) ?? [];
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
      { event: "audit.head", seq: 3, hash },
    ]);
  });

  it("is announced by the next who asks, when Redis didn't take it", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    await append(world, 1);
    await sealAll(world, folder.path);
    const { announce } = createNotices(world);
    const said: string[] = [];
    const on = { ...world, log: silentLog() };
    const refuse = () => Promise.reject(new Error("Redis is away"));
    await expect(announceHead({ ...on, announce: refuse }, "C0AUDIT")).rejects.toThrow("away");
    const hear: typeof announce = (notice) => (said.push(notice.id), announce(notice));
    await announceHead({ ...on, announce: hear }, "C0AUDIT");
    expect(said).toEqual([expect.stringMatching(/^audit-head-\d{4}-\d\d-\d\d$/)]);
  });
});
