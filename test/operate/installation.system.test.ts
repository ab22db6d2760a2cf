import { describe, expect, it } from "vitest";
import { startCluster } from "../support/redis-nodes.ts";
import { startWorld } from "../support/start-world.ts";

describe("two installations in one Cluster", () => {
  it("each find the primary of their own name, and perform their own changes", async () => {
    await using cluster = await startCluster("prod");
    const { url: redisUrl } = cluster;
    await using first = await startWorld({ redisUrl, namespace: "prod" });
    await using second = await startWorld({ redisUrl, namespace: "staging" });
    await first.olivia.types("ops", "/vm restart web-2");
    await second.olivia.types("ops", "/vm stop web-2");
    expect(await first.ended()).toMatchObject({ state: "done", record: { command: "vm restart" } });
    expect(await second.ended()).toMatchObject({ state: "done", record: { command: "vm stop" } });
  });
});
