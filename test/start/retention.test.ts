import { expect, it } from "vitest";
import { createKeys } from "../../src/redis/redis.ts";
import { kindOf, runRetention } from "../../src/start/retention.ts";
import { readSources } from "../structure/sources.ts";
import { startWorld } from "../support/start-world.ts";

it("every key that the sources name is of a kind that says how long it is kept", () => {
  const key = createKeys();
  const first = /\bkey\(\s*"([a-z-]+)"(?:,\s*"([a-z-]+)")?(,)?/g;
  const named = [...readSources(["src"]).values()].flatMap((text) =>
    [...text.matchAll(first)].map(([, one = "", two, more]) =>
      key(
        one,
        ...(two === undefined ? [] : [two]),
        ...(more === undefined && two !== undefined ? [] : ["x"]),
      ),
    ),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(
    named.filter(
      (one) => kindOf(one, key) === undefined && kindOf(one.replace(/:x$/, ""), key) === undefined,
    ),
  ).toEqual([]);
});

it("what stands in Redis is listed after a night's work, and nothing is of no known kind", async () => {
  await using world = await startWorld();
  await world.olivia.types("ops", "/vm snapshot db-1 nightly");
  await world.ended("vm snapshot");
  await world.olivia.types("ops", "/vm restart web-2");
  await world.ended("vm restart");
  await world.client.set(world.key("strange"), "1");
  const ofRequests = async () => (await world.client.keys(world.key("request", "*"))).toSorted();
  const before = await ofRequests();
  let said = "";
  const write = (text: string) => void (said += text);
  const { namespace } = world.key;
  const redisUrl = () => world.redisUrl;
  expect(await runRetention([], { redisUrl, namespace, write })).toBe(0);
  expect(said).toMatch(/^audit trail +\d+ +\d+ KiB {2}forever$/m);
  expect(said).toMatch(/^requests with their history +\d+ +\d+ KiB {2}90 days after their end$/m);
  expect(said).toMatch(/^of no known kind +1 /m);
  expect(said).toContain(`of VMs that are gone: ${world.key("snapshots", "<VM>")}.`);
  expect(await ofRequests()).toEqual(before);
  expect(await runRetention(["now"], { redisUrl, namespace, write })).toBe(64);
});
