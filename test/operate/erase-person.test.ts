import { describe, expect, it } from "vitest";
import { Trail } from "../../src/audit/trail.ts";
import { parseRecord } from "../../src/audit/read-audit.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { erasePerson } from "../../src/operate/erase-person.ts";
import { append, sealAll, testFolder } from "../audit/trail-of.ts";
import { everythingIn, keysWith } from "../support/everything-in.ts";
import { testRedis } from "../support/with-redis.ts";

const act = { who: "ada", why: "left the company" };

/** One key of each type that names U01, beside what others have. */
async function keptOfThree() {
  const world = await testRedis();
  const folder = await testFolder();
  const { redis, key } = world;
  await append(world, 30);
  await sealAll(world, folder.path);
  for (const [index, person] of ["U00", "U01", "U011"].entries()) {
    const id = `r-${index}`;
    const named = { id: person, name: `name of ${person}` };
    await redis.hset(key("request", id), {
      record: JSON.stringify({ id, requester: named, createdAt: 1 }),
      state: "done",
      revision: 4,
      [`vote:${person}`]: JSON.stringify({ voterId: person, name: named.name, at: 2 }),
      history: `12 ["done","settled","${person}"]\n`,
    });
    await redis.zadd(key("requests", "person", person), 7, id);
    await redis.set(key("rate", "drafts", person), "2", "PX", 600_000);
    await redis.hset(key("subscriptions"), `C01 ${person}`, JSON.stringify({ by: person, at: 3 }));
    await redis.rpush(key("freeze", "news"), `1-0 ${JSON.stringify({ by: person })}`);
    await redis.sadd(key("sends", "missing"), `r-1 by ${person}`);
    await redis.zadd(key("pending"), 5, `notice welcome-${person}-3`);
    await redis.xadd(key("messages", "events"), "*", "text", `<@${person}>`);
  }
  return {
    ...world,
    everything: () => everythingIn(redis, key),
    seal: () => sealAll(world, folder.path),
    verify: () => verifyAudit({ redis, key }),
    erase: (how: Partial<Parameters<typeof erasePerson>[0]> = {}) =>
      erasePerson({ redis, key, person: "U01", ...act, ...how }),
    async [Symbol.asyncDispose]() {
      await folder[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

/** All that neither names U01 nor belongs to the trail. */
const ofOthers = (everything: Awaited<ReturnType<typeof everythingIn>>) =>
  [...everything].filter(
    ([name, texts]) =>
      !/:(audit|messages:events)(:|$)/.test(name) &&
      !/U01\b|erased-1/.test(`${name} ${texts.join(" ")}`),
  );

describe("a person who is erased", () => {
  it("is nowhere in Redis, and all else is as it was", async () => {
    await using at = await keptOfThree();
    const { redis, key } = at;
    const before = await at.everything();
    expect(keysWith(before, "U01")).not.toEqual([]);
    const erased = await at.erase();
    expect(erased).toEqual({ pseudonym: "erased-1", records: 10, keys: 8 });
    const after = await at.everything();
    const left = [...after].filter(([name, texts]) => /U01\b/.test(`${name} ${texts.join("\n")}`));
    expect(left).toEqual([]);
    expect(after.get(key("messages", "events"))?.filter((text) => text.startsWith("<"))).toEqual([
      "<@U00>",
      "<@U011>",
    ]);
    expect(ofOthers(after)).toEqual(ofOthers(before));
    const request = await redis.hgetall(key("request", "r-1"));
    expect(request).toMatchObject({
      record: '{"id":"r-1","requester":{"id":"erased-1","name":"erased-1"},"createdAt":1}',
      "vote:erased-1": '{"voterId":"erased-1","name":"erased-1","at":2}',
      history: '12 ["done","settled","erased-1"]\n',
    });
    expect(Number(request["revision"])).toBeGreaterThan(4);
    expect(await redis.pttl(key("rate", "drafts", "erased-1"))).toBeGreaterThan(0);
    expect(await redis.zrange(key("pending"), 0, "-1")).toContain("notice welcome-erased-1-3");
    await at.seal();
    expect(await at.verify()).toMatchObject({ standing: "intact", redacted: 10 });
  });

  it("is recorded as erased by a pseudonym, and the next one gets another", async () => {
    await using at = await keptOfThree();
    await at.erase();
    await at.seal();
    await at.erase({ person: "U00" });
    await at.seal();
    const records = (await new Trail(at.redis, at.key).recordsBefore(undefined, 20)).map(
      parseRecord,
    );
    expect(records.filter(({ what }) => what === "person-erased")).toEqual([
      { what: "person-erased", ...act, person: "erased-2", records: 10, keys: expect.any(Number) },
      { what: "person-erased", ...act, person: "erased-1", records: 10, keys: 8 },
    ]);
    expect(await at.erase()).toBeUndefined();
    expect(await at.verify()).toMatchObject({ standing: "intact", redacted: 20 });
  });

  it("is erased by the next run when one was killed, under the same pseudonym", async () => {
    for (const point of ["begun", "trail", "keys"] as const) {
      await using at = await keptOfThree();
      const killed = { at: async (step: string) => expect(step, "killed").not.toBe(point) };
      await expect(at.erase(killed)).rejects.toThrow("killed");
      await at.seal();
      expect(await at.verify()).toMatchObject({ standing: "intact" });
      await expect(at.erase({ person: "U00" })).rejects.toThrow(
        "The erasure of U01 was interrupted",
      );
      expect(await at.erase()).toMatchObject({ pseudonym: "erased-1", records: 10 });
      expect(
        [...(await at.everything())].filter(([, texts]) => /U01\b/.test(texts.join("\n"))),
      ).toEqual([]);
      await at.seal();
      expect(await at.verify()).toMatchObject({ standing: "intact", redacted: 10 });
    }
  });

  it("may be named by further names, and neither by the reason nor in other words", async () => {
    await using at = await keptOfThree();
    await at.redis.set(at.key("notice", "1"), "Kim Lee restarted kim-lee and web-kim");
    await expect(at.erase({ why: "U01 left" })).rejects.toThrow("must not name the person");
    await expect(at.erase({ why: "bye Kim", names: ["Kim"] })).rejects.toThrow("must not name");
    await at.erase({ names: ["Kim Lee", "kim"] });
    expect(await at.redis.get(at.key("notice", "1"))).toBe(
      "erased-1 restarted kim-lee and web-kim",
    );
  });
});

describe("a person who is still active isn't erased, and the command says what to do first", () => {
  it.each([
    [
      "gatehouse.yml names them",
      ["hset", ["policy", "in-force"], "number", "1", "rules", "a", "text", "administer: [U01]"],
    ],
    [
      "user group S01ONCALL",
      [
        "hset",
        ["user-groups", "S01ONCALL"],
        "at",
        "9999999999999",
        "generation",
        "0",
        "text",
        '["U01"]',
      ],
    ],
    ["is being handled", ["hset", ["interactions", "7"], "data", '{"userId":"U01"}']],
    ["a pin that they proposed", ["hset", ["pins"], "vm-1", '1-0 {"by":"U01"}']],
    ["waits for its review", ["hset", ["reviews"], "r-1", '{"by":"U01"}']],
    ["the request r-1 is under way", ["zadd", ["requests", "open"], "1", "r-1"]],
  ] as const)("%s", async (says, [command, parts, ...args]) => {
    await using at = await keptOfThree();
    await at.redis.call(command, at.key(...parts), ...args);
    const before = await at.everything();
    await expect(at.erase()).rejects.toMatchObject({
      message: "U01 is still active, so nothing is erased now (1 reason)",
      hint: expect.stringContaining(says),
    });
    expect(await at.everything()).toEqual(before);
  });
});
